"""SQL statements that touch one row of a table of many files, and the number of files they rewrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.data import fill
from bench.figures import Line, timed
from bench.sizes import Sizes
from trickle import Changed, Trickle
from trickle.lake.log import read_commits


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """INSERT, UPDATE, DELETE and MERGE."""
    fill(t, "dml", sizes.table_rows, sizes.table_groups, sizes.dml_files)
    step = sizes.table_rows // (sizes.dml_rounds + 2)
    statements: dict[str, Callable[[int], str]] = {
        "INSERT of 1 row": lambda n: f"INSERT INTO dml VALUES ({sizes.table_rows + n}, 1, 1.00)",
        "UPDATE of 1 row": lambda n: f"UPDATE dml SET amount = amount + 1 WHERE id = {n * step}",
        "DELETE of 1 row": lambda n: f"DELETE FROM dml WHERE id = {n * step + 1}",
        "MERGE of 2 rows": lambda n: (
            f"MERGE INTO dml USING (VALUES ({n * step + 2}, 5.00), ({-n}, 6.00)) AS s(id, amount) ON dml.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amount = s.amount "
            "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount)"
        ),
    }
    for what, statement in statements.items():
        yield _measured(t, what, statement, sizes)


def _measured(t: Trickle, what: str, statement: Callable[[int], str], sizes: Sizes) -> Line:
    samples = []
    rewritten = 0
    # The first round warms Spark up.
    for number in range(sizes.dml_rounds + 1):
        with t.warehouse.engine.count_jobs() as count:
            took, changed = timed(t.sql, statement(number + 1))
        assert isinstance(changed, Changed), changed
        rewritten = max(rewritten, _files_removed(t, changed.version))
        if number > 0:
            samples.append(took)
    table = {"table_rows": sizes.table_rows, "table_files": sizes.dml_files}
    return Line(what, tuple(samples), {**table, "files_rewritten": rewritten, "spark_jobs": count.jobs})


def _files_removed(t: Trickle, version: int) -> int:
    """How many files a commit took out, as the log says."""
    location = t.warehouse.root.child("default", "dml")
    return len(read_commits(location, version - 1, version)[0].removes)
