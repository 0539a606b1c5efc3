"""Rows are written, then a small aggregate over the table is refreshed: until then readers do not see the change."""

from __future__ import annotations

from collections.abc import Iterator

from bench.data import SUMMARY, batch, fill
from bench.figures import Line, timed
from bench.sizes import Sizes
from trickle import Trickle


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """``t.write`` of some rows, then the refresh; both together are the time until readers see the change."""
    fill(t, "change_events", sizes.table_rows, sizes.table_groups)
    t.create_stream_table("change_summary", SUMMARY.format(table="change_events"))
    writes, refreshes = [], []
    for number in range(sizes.changes + 1):
        rows = batch(sizes.table_rows + number * sizes.changed_rows, sizes.changed_rows, sizes.table_groups)
        wrote, _ = timed(t.write, "change_events", rows)
        refreshed, result = timed(t.refresh_stream_table, "change_summary")
        # The first round warms Spark up.
        if number > 0:
            writes.append(wrote)
            refreshes.append(refreshed)
    both = tuple(w + r for w, r in zip(writes, refreshes, strict=True))
    facts = {"source_rows": sizes.table_rows, "changed_rows": sizes.changed_rows, "groups": sizes.table_groups}
    yield Line("change to refreshed result", both, {**facts, "action": result.action})
    yield Line("of this, t.write", tuple(writes))
    yield Line("of this, the refresh", tuple(refreshes), {"spark_jobs": result.spark_jobs})
