"""The net change of captured rows, before their texts are read.

One value has one text under the settings of ``connect.SPELLING``, so rows that cancel are found by their texts alone:
that is exact for every type, also for those that Arrow does not compare.

Grouping whole rows takes longest of all that an ingest does, and most keys change once. So where rows have a key, only
those are grouped whose key went or came more than once; of a key that went once and came once, the two rows are
compared side by side. Both come to the sum of all signs, whatever the order of the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.weights import WEIGHT

_KEY = "key"
_BETWEEN = "\0"
"""Between the texts of a key of several columns: no text of PostgreSQL has it."""


def net_texts(rows: pa.Table, key: Sequence[str] = ()) -> pa.Table:
    """Rows of texts with their WEIGHT, without those that cancel; what is left has weights of any size but 0. ``key``
    names columns that no two rows of the source share at a time.
    """
    weights = rows.column(WEIGHT)
    if rows.num_rows == 0 or pc.min(weights).as_py() > 0 or pc.max(weights).as_py() < 0:
        return rows
    if not key or any(rows.column(name).null_count for name in key):
        return _summed(rows)
    return _by_key(rows, _keys(rows, key))


def _summed(rows: pa.Table) -> pa.Table:
    columns = [name for name in rows.column_names if name != WEIGHT]
    if not columns:
        return rows
    summed = rows.group_by(columns, use_threads=False).aggregate([(WEIGHT, "sum")])
    kept = summed.filter(pc.not_equal(summed.column(f"{WEIGHT}_sum"), 0))
    return kept.select(columns).append_column(WEIGHT, kept.column(f"{WEIGHT}_sum"))


def _keys(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    columns = [rows.column(name).combine_chunks() for name in key]
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, _BETWEEN)


def _by_key(rows: pa.Table, keys: pa.Array) -> pa.Table:
    goes = pc.less(rows.column(WEIGHT), 0).combine_chunks()
    comes = pc.invert(goes)
    busy = pa.concat_arrays([_repeated(keys.filter(goes)), _repeated(keys.filter(comes))])
    parts = []
    if len(busy):
        among = pc.is_in(keys, busy)
        parts.append(_summed(rows.filter(among)))
        once = pc.invert(among)
        rows, keys, goes, comes = (part.filter(once) for part in (rows, keys, goes, comes))
    gone, come = rows.filter(goes), rows.filter(comes)
    partner = pc.index_in(keys.filter(comes), keys.filter(goes))
    second = pc.indices_nonzero(pc.is_valid(partner))
    first = partner.take(second)
    same = _same(gone.take(first), come.take(second))
    parts += [_without(gone, first.filter(same)), _without(come, second.filter(same))]
    return pa.concat_tables(parts)


def _repeated(keys: pa.Array) -> pa.Array:
    """The keys that are there more than once."""
    if pc.count_distinct(keys).as_py() == len(keys):
        return keys.slice(0, 0)
    counted = pa.table({_KEY: keys}).group_by(_KEY, use_threads=False).aggregate([([], "count_all")])
    return counted.filter(pc.greater(counted.column("count_all"), 1)).column(_KEY).combine_chunks()


def _same(old: pa.Table, new: pa.Table) -> pa.Array:
    """Row by row, whether all texts are the same; NULL is the same as NULL."""
    if not old.num_rows:
        return pa.array([], pa.bool_())
    columns = [
        pc.coalesce(pc.equal(before, after), pc.and_(pc.is_null(before), pc.is_null(after)))
        for name, before, after in zip(old.column_names, old.columns, new.columns, strict=True)
        if name != WEIGHT
    ]
    return reduce(pc.and_, columns).combine_chunks()


def _without(rows: pa.Table, places: pa.Array) -> pa.Table:
    if not len(places):
        return rows
    return rows.filter(pc.invert(pc.is_in(pa.arange(0, rows.num_rows), places.cast(pa.int64()))))
