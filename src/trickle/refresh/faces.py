"""The leaves of plans as DataFrames: tables at their old and new version, their changes, and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.names import quote
from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine, spark_errors
from trickle.engine.query import run_query
from trickle.lake.scan import pick, scan
from trickle.lake.snapshot import Snapshot
from trickle.operators import Face, Filter, Operator, Project, Scan, Step, Values, walk
from trickle.refresh.held import Held
from trickle.refresh.recursion import MAX_DEPTH, resolved
from trickle.sql.clock import with_moments
from trickle.sql.lower import lower

__all__ = ["Faces", "Held", "Table", "change_columns"]


@dataclass(frozen=True)
class Table:
    """A table that plans read: two versions of it, and how the change between them is read."""

    old: Snapshot | None
    new: Snapshot
    change: Callable[[Sequence[str]], DataFrame] | None = None
    local: Callable[[Sequence[str]], pa.Table | None] | None = None


@dataclass
class Faces:
    """What the leaves of the plans of one refresh stand for."""

    engine: Engine
    is_small: bool
    """Whether what is computed from the changes fits on the driver."""
    moments: Mapping[str, datetime] = field(default_factory=dict)
    """The times that ``NOW`` and ``NOW_OLD`` stand for."""
    tables: dict[str, Table] = field(default_factory=dict)
    changes: dict[str, Held] = field(default_factory=dict)
    steps: dict[str, Held] = field(default_factory=dict)
    max_depth: int = MAX_DEPTH
    """Rounds after which a recursion is taken for endless."""
    files_read: int = 0
    _cached: ExitStack = field(default_factory=ExitStack)

    def run(self, tree: Operator) -> DataFrame:
        """A tree as a DataFrame. Recursions in it are computed at once."""
        tree = resolved(self, with_moments(tree, self.moments), self.max_depth)
        wanted: dict[str, list[Scan | Step]] = {}
        for node in walk(tree):
            if isinstance(node, Scan | Step):
                wanted.setdefault(_leaf_key(node), []).append(node)
        frames = [self._frame(leaves) for leaves in wanted.values()]

        def render(names: Sequence[str]) -> str:
            by_leaf = dict(zip(wanted, names, strict=True))
            return lower(tree, lambda leaf: by_leaf[_leaf_key(leaf)])

        return run_query(self.engine, frames, render)

    def hold(self, frame: DataFrame) -> Held:
        """Compute rows once: on the driver when they are few, else where Spark keeps them."""
        with spark_errors():
            if self.is_small:
                table = frame.toArrow()
                return Held(self.engine.from_arrow(table, frame.schema), table.num_rows)
            kept = frame.persist()
            self._cached.callback(kept.unpersist)
            return Held(kept, kept.count())

    def hold_step(self, tree: Operator) -> Held:
        """The rows of a step. What only picks from changes at hand costs nothing to repeat, and no job to look at."""
        frame = self.run(tree)
        if self.is_small and all(map(_is_at_hand, walk(tree))):
            with spark_errors():
                return Held(frame, 0 if frame.isEmpty() else 1)
        return self.hold(frame)

    def hold_change(self, table: str, columns: Sequence[str]) -> Held:
        """The net change of a table, each row with a weight of +1 or -1; computed once."""
        if table not in self.changes:
            source = self.tables[table]
            assert source.change is not None
            rows = source.local(columns) if self.is_small and source.local is not None else None
            if rows is None:
                self.changes[table] = self.hold(_single(source.change(columns)))
            else:
                fields = [StructField(f.name, f.dataType) for f in pick(source.new.schema, columns).fields]
                shape = StructType([*fields, StructField(WEIGHT, LongType())])
                self.changes[table] = Held(self.engine.from_arrow(rows, shape), rows.num_rows)
        return self.changes[table]

    def close(self) -> None:
        """Let go of what Spark keeps."""
        self._cached.close()

    def _frame(self, leaves: Sequence[Scan | Step]) -> DataFrame:
        first = leaves[0]
        if isinstance(first, Step):
            return self.steps[first.name].frame
        table = self.tables[first.table]
        if first.face is Face.CHANGE:
            return self.changes[first.table].frame
        snapshot = table.new if first.face is Face.NEW else table.old
        assert snapshot is not None, f"{first.table} has no {first.face} version"
        self.files_read += len(snapshot.files)
        with spark_errors():
            return scan(self.engine, snapshot, columns=_columns(leaves), located=first.located)


def _is_at_hand(node: Operator) -> bool:
    match node:
        case Scan():
            return node.face is Face.CHANGE
        case Step() | Filter() | Project() | Values():
            return True
        case _:
            return False


def change_columns(trees: Iterable[Operator]) -> Mapping[str, Sequence[str]]:
    """For each table whose change trees read: the columns of it that they use."""
    found: dict[str, list[Scan | Step]] = {}
    for tree in trees:
        for node in walk(tree):
            if isinstance(node, Scan) and node.face is Face.CHANGE:
                found.setdefault(node.table, []).append(node)
    return {table: _columns(leaves) for table, leaves in found.items()}


def _columns(leaves: Sequence[Scan | Step]) -> list[str]:
    return list(dict.fromkeys(column for leaf in leaves for column, _ in leaf.fields))


def _leaf_key(leaf: Scan | Step) -> str:
    match leaf:
        case Step():
            return f"step {leaf.name}"
        case Scan():
            return f"{leaf.face} {leaf.located} {leaf.table}"


def _single(rows: DataFrame) -> DataFrame:
    """Rows whose weights are all +1 or -1: a row of weight -3 is there three times."""
    columns = [F.col(quote(name)) for name in rows.columns if name != WEIGHT]
    sign = F.signum(F.col(WEIGHT)).cast("int")
    return rows.select(*columns, F.explode(F.array_repeat(sign, F.abs(F.col(WEIGHT)).cast("int"))).alias(WEIGHT))
