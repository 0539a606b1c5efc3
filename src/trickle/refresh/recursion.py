"""Recursions, iterated on Spark.

Spark's own recursion has no UNION, no aggregates and a hundred levels. So the engine goes round by itself: the start,
then the step over the rows that the last round made, until a round makes none. With UNION, rows that were found before
are left out. A recursion inside another comes first, and once if it does not depend on the other.

Each round is computed once and cut off from how it was computed: plans would grow from round to round. Few rows are
held on the driver, many where Spark keeps them. Columns have the types that the start gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from trickle.algebra.names import quote
from trickle.delta.linear import with_previous
from trickle.delta.optimize.join_order import order_joins
from trickle.delta.optimize.restrict import restrict_right
from trickle.engine import Engine, spark_errors
from trickle.engine.arrow import for_spark
from trickle.engine.tuning import Load
from trickle.errors import UnsupportedQuery
from trickle.lake.shape import relaxed
from trickle.operators import Aggregate, Join, JoinKind, Operator, Recursion, Step, null_safe, walk
from trickle.refresh.held import Held

if TYPE_CHECKING:
    from trickle.refresh.faces import Faces

MAX_DEPTH = 1000
"""Rounds after which a recursion is taken for endless."""

LOCAL_ROWS = 20_000
"""Rows of a round that are held on the driver."""

_PIECES = 16
"""Pieces of what was found so far that are read side by side before they become one."""

_SEEN = "_seen"
_CANDIDATES = "_candidates"
_numbers = count(1)


def resolved(faces: Faces, tree: Operator, max_depth: int = MAX_DEPTH) -> Operator:
    """The tree with each recursion replaced by a step that holds its rows."""
    if not any(isinstance(node, Recursion) for node in walk(tree)):
        return tree
    return _Resolving(faces, max_depth).tree(tree)


class _Resolving:
    def __init__(self, faces: Faces, max_depth: int) -> None:
        self._faces = faces
        self._max_depth = max_depth
        self._done: dict[Recursion, str] = {}

    def tree(self, node: Operator) -> Operator:
        if not isinstance(node, Recursion):
            inputs = [self.tree(child) for child in node.inputs]
            return node.with_inputs(inputs) if inputs else node
        if node not in self._done:
            self._done[node] = self._iterated(node)
        return _step(self._done[node], node.names)

    def _iterated(self, node: Recursion) -> str:
        name = f"recursion_{next(_numbers)}"
        start = self._faces.run(self.tree(node.base))
        load: Load = "light" if self._faces.is_light else "any"
        found = _Found(self._faces.engine, _by_place(start.schema), load, is_small=self._faces.is_small)
        if node.distinct:
            with spark_errors():
                start = start.distinct()
        latest = found.hold(start)
        rounds = 0
        while latest.rows:
            rounds += 1
            if rounds > self._max_depth:
                raise _endless(node, self._max_depth)
            found.add(latest)
            # A name for each round: what is computed from one round is not taken for that of another.
            previous = f"{name}_{rounds}"
            self._bind(previous, latest)
            step = self.tree(with_previous(node.step, node.name, partial(_step, previous)))
            latest = self._next(name, step, found) if node.distinct else found.hold(self._run(step))
            self._unbind(previous, f"{name}{_SEEN}", f"{name}{_CANDIDATES}")
        self._bind(name, found.all())
        return name

    def _next(self, name: str, step: Operator, found: _Found) -> _Rows:
        """The rows of a round that were not found before."""
        seen = f"{name}{_SEEN}"
        self._bind(seen, found.all())
        if not (self._faces.is_small and isinstance(step, Join) and step.kind in (JoinKind.SEMI, JoinKind.ANTI)):
            return found.hold(self._run(self._unseen(step, seen)))
        # What is compared with a table is few rows: they are held first, so that little of the table is read.
        candidates = found.hold(self._run(self._unseen(step.left, seen)))
        if not candidates.rows:
            return candidates
        held = f"{name}{_CANDIDATES}"
        self._bind(held, candidates)
        return found.hold(self._run(replace(step, left=_step(held, step.left.columns))))

    def _unseen(self, rows: Operator, seen: str) -> Operator:
        known = _step(seen, [f"__trickle_seen_{place}" for place, _ in enumerate(rows.columns)])
        condition = null_safe(zip(rows.columns, known.columns, strict=True))
        unseen = Join(JoinKind.ANTI, rows, known, condition, small="right" if self._faces.is_small else None)
        return Aggregate(unseen, rows.columns)

    def _run(self, tree: Operator) -> DataFrame:
        return self._faces.run(restrict_right(order_joins(tree)) if self._faces.is_small else tree)

    def _bind(self, name: str, rows: _Rows) -> None:
        self._faces.steps[name] = Held(rows.frame, rows.rows)

    def _unbind(self, *names: str) -> None:
        for name in names:
            self._faces.steps.pop(name, None)


@dataclass(frozen=True)
class _Rows:
    """Rows that were computed; those on the driver are there as ``local`` too."""

    frame: DataFrame
    rows: int
    local: pa.Table | None = None


@dataclass
class _Found:
    """What was found so far, in pieces."""

    engine: Engine
    schema: StructType
    load: Load
    is_small: bool
    _local: list[pa.Table] = field(default_factory=list)
    _kept: list[_Rows] = field(default_factory=list)
    _latest_was_big: bool = False

    def hold(self, frame: DataFrame) -> _Rows:
        """Compute the rows of a round."""
        fitting = self._fitting(frame)
        with spark_errors(), self.engine.tuned(self.load):
            if self.is_small:
                return self._on_driver(fitting.toArrow())
            if not self._latest_was_big:
                table = fitting.limit(LOCAL_ROWS + 1).toArrow()
                if table.num_rows <= LOCAL_ROWS:
                    return self._on_driver(table)
            kept = fitting.localCheckpoint()
            rows = kept.count()
            self._latest_was_big = rows > LOCAL_ROWS
            return _Rows(kept, rows)

    def add(self, rows: _Rows) -> None:
        if rows.local is not None:
            self._local.append(rows.local)
        else:
            self._kept.append(rows)

    def all(self) -> _Rows:
        """All rows as one."""
        if len(self._kept) > _PIECES:
            with spark_errors():
                joined = reduce(DataFrame.union, [piece.frame for piece in self._kept]).localCheckpoint()
            self._kept = [_Rows(joined, sum(piece.rows for piece in self._kept))]
        pieces = list(self._kept)
        if self._local or not pieces:
            self._local = [pa.concat_tables(self._local)] if self._local else []
            table = self._local[0] if self._local else self._nothing()
            pieces.append(self._on_driver(table))
        with spark_errors():
            frame = reduce(DataFrame.union, [piece.frame for piece in pieces])
        return _Rows(frame, sum(piece.rows for piece in pieces))

    def _on_driver(self, found: pa.Table) -> _Rows:
        table = for_spark(found, self.schema)
        return _Rows(self.engine.from_arrow(table, self.schema), table.num_rows, table)

    def _nothing(self) -> pa.Table:
        with spark_errors():
            return self.engine.spark.createDataFrame([], self.schema).toArrow()

    def _fitting(self, frame: DataFrame) -> DataFrame:
        """The columns under their places, in the types of the start."""
        with spark_errors():
            named = frame.toDF(*self.schema.names)
            if named.schema == self.schema:
                return named
            return named.select([F.col(quote(f.name)).cast(f.dataType) for f in self.schema])


def _by_place(schema: StructType) -> StructType:
    nullable = relaxed(schema)
    return StructType([StructField(f"c{place}", each.dataType) for place, each in enumerate(nullable.fields)])


def _step(name: str, names: Sequence[str]) -> Step:
    return Step(name, tuple((f"c{place}", column) for place, column in enumerate(names)))


def _endless(node: Recursion, max_depth: int) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"recursion {node.name} did not end after {max_depth} rounds",
        detail="every round made rows that the next one started from",
        hint="bound its depth in the step"
        if node.distinct
        else "write UNION in place of UNION ALL when the data has cycles, or bound its depth in the step",
    )
