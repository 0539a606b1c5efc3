"""A full refresh over a large table, alone and with a consumer that wants to know what changed."""

from __future__ import annotations

from collections.abc import Iterator

from bench.data import SUMMARY, batch, fill
from bench.figures import Fact, Line, timed
from bench.sizes import Sizes
from trickle import RefreshResult, Trickle
from trickle.lake.location import Location
from trickle.lake.snapshot import open_snapshot


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """First fill, forced refreshes, and a refresh that also computes the difference for a consumer."""
    loaded, _ = timed(fill, t, "big", sizes.big_rows, sizes.big_groups)
    yield Line("load the table with t.write", (loaded,), {"rows": sizes.big_rows, "files": _files(t, "big")})
    filled, _ = timed(t.create_stream_table, "big_summary", SUMMARY.format(table="big"))
    yield Line("create and fill the stream table", (filled,), {"groups": sizes.big_groups})

    samples = [timed(t.refresh_stream_table, "big_summary", force=True) for _ in range(sizes.big_refreshes)]
    yield Line("full refresh", tuple(ms for ms, _ in samples), _facts(t, samples[-1][1]))

    t.create_stream_table("big_groups", "SELECT COUNT(*) AS groups FROM big_summary")
    samples = []
    for number in range(sizes.big_refreshes):
        t.write("big", batch(sizes.big_rows + number * sizes.changed_rows, sizes.changed_rows, sizes.big_groups))
        samples.append(timed(t.refresh_stream_table, "big_summary"))
    facts = {"changed_rows": sizes.changed_rows, **_facts(t, samples[-1][1])}
    yield Line("full refresh with a consumer", tuple(ms for ms, _ in samples), facts)


def _facts(t: Trickle, result: RefreshResult) -> dict[str, Fact]:
    return {
        "spark_jobs": result.spark_jobs,
        "rows_inserted": result.rows_inserted,
        "rows_deleted": result.rows_deleted,
        "files": _files(t, result.name),
    }


def _files(t: Trickle, name: str) -> int:
    place = next(row.location for row in t.tables() if row.name == name)
    assert place is not None
    return len(open_snapshot(Location.of(place)).files)
