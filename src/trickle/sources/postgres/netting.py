"""The net change of captured rows, before their texts are read.

One value has one text under the settings of ``connect.SPELLING``, so rows that cancel are found by their texts alone:
that is exact for every type, also for those that Arrow does not compare.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.weights import WEIGHT


def net_texts(rows: pa.Table) -> pa.Table:
    """Rows of texts with their WEIGHT, without those that cancel; what is left has weights of any size but 0."""
    weights = rows.column(WEIGHT)
    if rows.num_rows == 0 or pc.min(weights).as_py() > 0 or pc.max(weights).as_py() < 0:
        return rows
    columns = [name for name in rows.column_names if name != WEIGHT]
    if not columns:
        return rows
    summed = rows.group_by(columns, use_threads=False).aggregate([(WEIGHT, "sum")])
    kept = summed.filter(pc.not_equal(summed.column(f"{WEIGHT}_sum"), 0))
    return kept.select(columns).append_column(WEIGHT, kept.column(f"{WEIGHT}_sum"))
