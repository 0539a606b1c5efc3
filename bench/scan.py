"""Reading a table of many files: the plan is built without a Spark job that lists them."""

from __future__ import annotations

from collections.abc import Iterator

from bench.data import fill
from bench.figures import Line, timed
from bench.sizes import Sizes
from trickle import Trickle


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """``t.table`` alone, and with the query that reads all rows."""
    fill(t, "many_files", sizes.table_rows, sizes.table_groups, sizes.scan_files)
    engine = t.warehouse.engine
    with engine.count_jobs() as planning:
        planned = [timed(t.table, "many_files")[0] for _ in range(sizes.scan_rounds)]
    with engine.count_jobs() as reading:
        read = [timed(_read, t)[0] for _ in range(sizes.scan_rounds)]
    facts = {"files": sizes.scan_files, "rows": sizes.table_rows}
    yield Line("t.table, the plan", tuple(planned), {**facts, "spark_jobs": planning.jobs})
    jobs = None if reading.jobs is None else reading.jobs // sizes.scan_rounds
    yield Line("t.table, all rows read", tuple(read), {**facts, "spark_jobs": jobs})


def _read(t: Trickle) -> None:
    t.table("many_files").groupBy().sum("grp").collect()
