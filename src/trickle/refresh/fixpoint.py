"""The least contents of tables that agree with queries over each other, round by round.

Let T be the queries, over the tables. T is monotone, so nothing <= T(nothing) <= T(T(nothing)) <= ..., and where this
chain ends is the least fixpoint: every row of it rests, perhaps through other rows, on rows of the sources. Rows that
only hold each other up are not in it. The chain may begin at any contents X within the fixpoint that have X <= T(X): it
stays within, grows, and can end nowhere else.

Because it grows, a table that has as many rows as before has the same rows as before.

In a round the tables are computed one after the other, each from the newest of the others. One that is a set (UNION,
DISTINCT) is computed from the rows that came since it was last computed, and keeps those that it did not have; others
are computed whole. One whose sources have no new rows is not computed at all.

Rows of a round are cut off from how they were computed, or plans would grow from round to round. Few are held on the
driver, many where Spark keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.engine import Engine, spark_errors
from trickle.engine.arrow import for_spark
from trickle.lake.assign import conform
from trickle.lake.shape import relaxed
from trickle.operators import Operator, Scan, Step, scans_of
from trickle.refresh.faces import Faces, Held
from trickle.refresh.monotone import increments, set_rows, whole
from trickle.refresh.recursion import LOCAL_ROWS


@dataclass(frozen=True)
class Rows:
    """Rows that were computed; those on the driver are there as ``local`` too."""

    frame: DataFrame
    count: int
    local: pa.Table | None = None


@dataclass
class Table:
    """A table on the cycle: its query, and its contents so far."""

    tree: Operator
    schema: StructType
    """The columns of its contents, nullable."""
    rows: Rows
    latest: Rows
    """Rows that came when it was last computed; for a table that is no set, all its rows if any came."""
    is_begun: bool = False


@dataclass
class Fixpoint:
    """The tables of a cycle, by name, on their way."""

    faces: Faces
    tables: dict[str, Table] = field(default_factory=dict)

    def add(self, name: str, tree: Operator, schema: StructType, start: Rows | None) -> None:
        """A table, with the contents to start from if there are any."""
        empty = _local(self.faces.engine, pa.table([[]] * len(schema), names=schema.names), relaxed(schema))
        self.tables[name] = Table(tree, relaxed(schema), start or empty, empty)

    def run(self, most: int) -> tuple[int, Sequence[str]]:
        """Go round until no table changes, at most so often: the rounds, and the tables that changed in the last."""
        for rounds in range(1, most + 1):
            changed = [name for name in self.tables if self._advance(name)]
            if not changed:
                return rounds, ()
        return most, changed

    def _advance(self, name: str) -> bool:
        """Compute a table from the newest of the others; whether rows came."""
        table = self.tables[name]
        self._bind()
        before = table.rows.count
        if not table.is_begun or self._is_touched(table):
            self._compute(table)
        else:
            table.latest = _none_of(table.latest)
        table.is_begun = True
        return table.rows.count != before

    def _is_touched(self, table: Table) -> bool:
        read = {scan.table for scan in scans_of(table.tree)}
        return any(one.latest.count for name, one in self.tables.items() if name in read)

    def _compute(self, table: Table) -> None:
        rows = set_rows(table.tree)
        if rows is None:
            now = self._hold(table, [whole(table.tree, self.tables, self._all)])
            table.rows, table.latest = now, now if now.count != table.rows.count else _none_of(now)
        else:
            trees = (
                increments(rows, self.tables, self._all, self._latest)
                if table.is_begun
                else [whole(rows, self.tables, self._all)]
            )
            table.latest = self._hold(table, trees, beyond=table.rows)
            if table.latest.count:
                table.rows = _joined(self.faces.engine, table.rows, table.latest, table.schema)

    def _bind(self) -> None:
        for name, table in self.tables.items():
            self.faces.steps[f"all {name}"] = Held(table.rows.frame, table.rows.count)
            self.faces.steps[f"latest {name}"] = Held(table.latest.frame, table.latest.count)

    def _all(self, scan: Scan) -> Operator:
        return Step(f"all {scan.table}", scan.fields)

    def _latest(self, scan: Scan) -> Operator | None:
        return Step(f"latest {scan.table}", scan.fields) if self.tables[scan.table].latest.count else None

    def _hold(self, table: Table, trees: Sequence[Operator], *, beyond: Rows | None = None) -> Rows:
        """The rows of some trees, computed; as a set without those it is ``beyond``, where these are given."""
        frames = [conform(self.faces.run(tree), table.schema) for tree in trees]
        with spark_errors(), self.faces.engine.tuned("light" if self.faces.is_light else "any"):
            frame = reduce(DataFrame.union, frames)
            if beyond is not None:
                frame = frame.subtract(beyond.frame) if beyond.count else frame.distinct()
            found = frame.limit(LOCAL_ROWS + 1).toArrow()
            if found.num_rows <= LOCAL_ROWS:
                return _local(self.faces.engine, found, table.schema)
            kept = frame.localCheckpoint()
            return Rows(kept, kept.count())


def _local(engine: Engine, found: pa.Table, schema: StructType) -> Rows:
    table = for_spark(found, schema)
    return Rows(engine.from_arrow(table, schema), table.num_rows, table)


def _none_of(rows: Rows) -> Rows:
    """No rows, of the same columns; never read."""
    return Rows(rows.frame, 0)


def _joined(engine: Engine, one: Rows, other: Rows, schema: StructType) -> Rows:
    if one.local is not None and other.local is not None:
        return _local(engine, pa.concat_tables([one.local, other.local]), schema)
    with spark_errors():
        return Rows(one.frame.union(other.frame), one.count + other.count)
