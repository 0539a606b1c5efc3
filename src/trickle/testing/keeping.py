"""A query kept by its changes on DuckDB, next to the oracle: what Spark does in ``refresh/differential.py``, in a
millisecond a statement.

    Q(new), the user's own text on DuckDB, is compared after every batch with

    plain       Q(old) + differentiate(whole tree)
    stages      the stored tables, each changed by its stage's plan as it is written
    optimised   the same plans, after every rewrite of ``delta/optimize``

Both forms of a plan start from the same stored rows and must give the same change. It is applied as on Spark: rows that
go are found by their place where the plan says so, by their value elsewhere, and have to be there. Then every stored
table, hidden columns included, must be what its stage computes from the sources alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trickle.algebra.names import DEFAULT_SCHEMA, TableName
from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta import differentiate
from trickle.delta.optimize import optimized
from trickle.delta.optimize.nulls import Removal
from trickle.delta.optimize.prune import is_nothing, prune, prune_plan
from trickle.delta.parts import summed_argument
from trickle.delta.plan import OWN, Plan, stands_still
from trickle.delta.stages import Rows, Stage, split
from trickle.errors import NegativeMultiplicity
from trickle.operators import Aggregate, Face, Operator, Output, Project, Recursion, Scan, Step, walk
from trickle.sql.build import build_tree
from trickle.sql.lower import lower
from trickle.sql.rewrites import rewrite
from trickle.testing.duck import Duck
from trickle.testing.multisets import Row, applied, multiset, weighted_difference
from trickle.testing.spark_text import to_duckdb

_FILE = "file"
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
_SPARK = {
    "INTEGER": "int",
    "BIGINT": "bigint",
    # A sum of integers, which is a bigint in Spark.
    "HUGEINT": "bigint",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    '"NULL"': "void",
}

Columns = Mapping[str, str]
"""The columns of a table with Spark's types."""


class Disagreement(AssertionError):
    """Two ways to the same rows that differ."""


@dataclass
class Batch:
    """What a batch of changes did to the result."""

    rows_changed: int


class Bench(Duck):
    """A DuckDB that serves many queries, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        # Tables have ten rows: what the optimiser could save is less than what it takes.
        self._connection.execute("PRAGMA disable_optimizer")

    def put(self, name: str, rows: pa.Table) -> None:
        """Give a table its rows, in place of those it had, under the name that statements use."""
        self._connection.register(name, rows)
        self._tables[name] = rows

    def column(self, name: str, column: str) -> pa.ChunkedArray:
        """A column of a table as it was put."""
        return self._tables[name].column(column)

    def rows(self, statement: str) -> pa.Table:
        return self._fetch(statement)

    def types(self, statement: str) -> list[tuple[str, str]]:
        """The columns of a query with Spark's types."""
        found = self._connection.execute(f"DESCRIBE {statement}").fetchall()
        return [(name, _SPARK.get(kind) or kind.lower()) for name, kind, *_ in found]


def arrow_table(columns: Columns, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows as a table of the given columns.

    >>> arrow_table({"a": "int", "b": "decimal(4,1)"}, [[1, None]]).schema.types
    [DataType(int32), Decimal128Type(decimal128(4, 1))]
    """
    arrays = [pa.array([row[place] for row in rows], arrow_type(kind)) for place, kind in enumerate(columns.values())]
    return pa.table(arrays, names=list(columns))


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of one of Spark's."""
    if kind.startswith("decimal"):
        digits, places = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(digits), int(places))
    return _ARROW[kind]


@dataclass
class _Kept:
    """A stage with its stored rows and the statements that were made for it."""

    stage: Stage
    plan: Plan
    stored: pa.Table

    plans: dict[frozenset[str], Plan] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        return self.stage.table == OWN

    def best_plan(self, unchanged: frozenset[str]) -> Plan:
        """The plan as Spark would run it, given tables that did not change."""
        if unchanged not in self.plans:
            self.plans[unchanged] = optimized(prune_plan(self.plan, unchanged))
        return self.plans[unchanged]


class Keeping:
    """A query over tables, kept. Sources are given with their rows; ``refresh`` gives those that changed anew."""

    def __init__(self, bench: Bench, text: str, schemas: Mapping[str, Columns], rows: Mapping[str, pa.Table]) -> None:
        self._bench = bench
        self._rows = dict(rows)
        self._statements: dict[Operator, str] = {}
        self._settled: dict[str, pa.Table | None] = {}
        for name, table in rows.items():
            self._face_both(name, table)
        self._oracle = to_duckdb(text, lambda name: _table(name, Face.NEW))
        described = {TableName.of([name]): columns for name, columns in schemas.items()}
        self.tree = rewrite(build_tree(text, described, standard=True), described)
        self._delta = differentiate(self.tree)
        self.result = self._bench.rows(self._oracle)
        self._expect("the tree as built", self._run(self.tree), self.result)
        self._stages = [self._filled(stage) for stage in split(self.tree, self._types_of, OWN)]
        self._check_stored()
        self._check_result()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(kept.stage for kept in self._stages)

    def refresh(self, changed: Mapping[str, pa.Table], *, thorough: bool = True) -> Batch:
        """Take over the new rows of some tables, keep the result by changes, and compare.

        Unless ``thorough``, only the optimised plans are run, and only the result is compared.
        """
        unchanged = {name for name in self._rows if not self._move(name, changed.get(name))}
        before, self.result = self.result, self._bench.rows(self._oracle)
        if thorough:
            self._expect_plain(before)
        for kept in self._stages:
            if not self._keep(kept, frozenset(unchanged), thorough=thorough):
                unchanged.add(kept.stage.table)
        if thorough:
            self._check_stored()
        self._check_result()
        return Batch(sum(map(abs, _difference(multiset(before), multiset(self.result)).values())))

    def _move(self, name: str, rows: pa.Table | None) -> bool:
        """Have a table's old rows be what its new ones were. Whether it changed."""
        old = self._rows[name]
        new = self._rows[name] = old if rows is None else rows
        return self._face_all(name, old, new)

    def _expect_plain(self, before: pa.Table) -> None:
        change = self._run(self._delta)
        _check_weights("plain", change)
        _compare("plain", applied(before, change), multiset(self.result))

    def _keep(self, kept: _Kept, unchanged: frozenset[str], *, thorough: bool) -> bool:
        """Change a stage's stored rows. Whether they changed."""
        table = kept.stage.table
        if self._settled.get(OWN) is not kept.stored:
            self._bench.put(_table(OWN, Face.OLD), _placed(kept.stored))
            self._settled[OWN] = kept.stored
        change = self._optimised(kept, unchanged)
        _check_weights(f"{table} optimised", change)
        if thorough:
            written = self._as_written(kept)
            _check_weights(f"{table} as written", written)
            _compare(f"{table}: the change, optimised and as written", _net(change), _net(written))
        old = kept.stored
        new = kept.stored = _apply(kept, change) if change.num_rows else old
        return not kept.is_own and self._face_all(table, old, new)

    def _as_written(self, kept: _Kept) -> pa.Table:
        for step in kept.plan.steps:
            self._bench.put(_step(step.name), _step_rows(self._run(step.tree)))
        return self._run(kept.plan.result)

    def _optimised(self, kept: _Kept, unchanged: frozenset[str]) -> pa.Table:
        """As ``refresh/differential.py`` runs a plan: a step without rows takes along what depends on it."""
        plan = kept.best_plan(unchanged)
        empty: list[str] = []
        for step in plan.steps:
            tree = self._without_nulls(prune(step.tree, (), empty))
            held = None if is_nothing(tree) else self._run(tree)
            if held is not None and held.num_rows:
                self._bench.put(_step(step.name), _step_rows(held))
                continue
            empty.append(step.name)
            if stands_still(empty):
                return _nothing_changed(kept)
        result = self._without_nulls(prune(plan.result, (), empty))
        if is_nothing(result):
            return _nothing_changed(kept)
        return self._run(result)

    def _without_nulls(self, tree: Operator) -> Operator:
        return Removal(lambda leaf, column: not self._bench.column(_name_of(leaf), column).null_count).tree(tree)

    def _run(self, tree: Operator) -> pa.Table:
        if any(isinstance(node, Recursion) for node in walk(tree)):
            return self._bench.run(tree)
        return self._bench.rows(self._statement(tree))

    def _statement(self, tree: Operator) -> str:
        """The statement of a tree; equal trees have one, as tables keep their names from batch to batch."""
        if tree not in self._statements:
            self._statements[tree] = lower(tree, _name_of, "duckdb")
        return self._statements[tree]

    def _filled(self, stage: Stage) -> _Kept:
        rows = self._run(stage.keeping.whole()).select(list(stage.columns))
        if stage.table != OWN:
            self._face_both(stage.table, rows)
        return _Kept(stage, stage.keeping.change(), rows)

    def _check_stored(self) -> None:
        """Every stored table is what its stage computes from the sources alone, with and without hidden columns."""
        for kept in self._stages:
            if isinstance(kept.stage.keeping, Rows):
                continue
            for form, tree in (("whole", kept.stage.whole), ("plain", kept.stage.plain)):
                expected = self._run(tree)
                found = kept.stored.select(expected.column_names)
                self._expect(f"{kept.stage.table}, stored and computed ({form})", found, expected)

    def _check_result(self) -> None:
        own = self._stages[-1]
        self._expect(own.stage.table, own.stored.select(self.result.column_names), self.result)

    def _expect(self, what: str, found: pa.Table, expected: pa.Table) -> None:
        _compare(what, multiset(found), multiset(expected))

    def _types_of(self, aggregate: Aggregate) -> Sequence[tuple[str, str]]:
        wanted = [(c.name, argument) for c in aggregate.calls if (argument := summed_argument(c)) is not None]
        if not wanted:
            return ()
        arguments = Project(aggregate.input, tuple(Output(name, argument) for name, argument in wanted))
        if not any(isinstance(node, Recursion) for node in walk(arguments)):
            return self._bench.types(self._statement(arguments))
        self._bench.put(_step("typed"), self._bench.run(arguments))
        return self._bench.types(f'SELECT * FROM "{_step("typed")}"')

    def _face_both(self, name: str, rows: pa.Table) -> None:
        self._face_all(name, rows, rows)

    def _face_all(self, name: str, old: pa.Table, new: pa.Table) -> bool:
        """Give a table its faces. Whether its rows changed."""
        if old is new and self._settled.get(name) is new:
            return False
        change = weighted_difference(old, new)
        for face, rows in ((Face.OLD, old), (Face.NEW, new), (Face.CHANGE, change)):
            table = _table(name, face)
            if self._settled.get(table) is not rows:
                self._bench.put(table, rows)
                self._settled[table] = rows
        self._settled[name] = new if old is new else None
        return bool(change.num_rows)


def _nothing_changed(kept: _Kept) -> pa.Table:
    rows = kept.stored.slice(0, 0).append_column(WEIGHT, pa.array([], pa.int64()))
    return _placed(rows) if kept.plan.located else rows


def _apply(kept: _Kept, change: pa.Table) -> pa.Table:
    """The stored rows after a change."""
    shape = kept.stored.schema
    rows = _tuples(change.select(shape.names))
    weights = change[WEIGHT].to_pylist()
    if kept.plan.located:
        places = change[ROW].to_pylist()
        gone = _located(kept, [(row, place) for row, w, place in zip(rows, weights, places, strict=True) if w < 0])
        came = [row for row, weight in zip(rows, weights, strict=True) if weight > 0]
    else:
        net: Counter[Row] = Counter()
        for row, weight in zip(rows, weights, strict=True):
            net[row] += weight
        gone = _found(kept, net)
        came = list((+net).elements())
    stayed = [row for place, row in enumerate(_tuples(kept.stored)) if place not in gone]
    return _from_tuples([*stayed, *came], shape)


def _located(kept: _Kept, going: Sequence[tuple[Row, int | None]]) -> set[int]:
    """Places of rows that go, where the plan has said what lies there."""
    stored = _tuples(kept.stored)
    gone: set[int] = set()
    for row, place in going:
        if place is None or place in gone or stored[place] != row:
            raise NegativeMultiplicity(f"{kept.stage.table}: row {row} does not lie at {place}")
        gone.add(place)
    return gone


def _found(kept: _Kept, net: Counter[Row]) -> set[int]:
    """Places of rows that go, found by their values."""
    missing = -net
    gone: set[int] = set()
    for place, row in enumerate(_tuples(kept.stored)):
        if missing[row] > 0:
            missing[row] -= 1
            gone.add(place)
    if left := +missing:
        raise NegativeMultiplicity(f"{kept.stage.table}: rows that are not there go: {dict(left)}")
    return gone


def _tuples(rows: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _from_tuples(rows: Sequence[Row], shape: pa.Schema) -> pa.Table:
    arrays = [pa.array([row[place] for row in rows], column.type) for place, column in enumerate(shape)]
    return pa.table(arrays, schema=shape)


def _placed(rows: pa.Table) -> pa.Table:
    """Stored rows with the columns that say where they lie."""
    files = pa.array([_FILE] * rows.num_rows, pa.string())
    return rows.append_column(FILE, files).append_column(ROW, pa.array(range(rows.num_rows), pa.int64()))


def _net(change: pa.Table) -> Counter[Row]:
    return multiset(change.drop_columns([name for name in (FILE, ROW, HIDDEN) if name in change.column_names]))


def _check_weights(what: str, change: pa.Table) -> None:
    if odd := set(change[WEIGHT].to_pylist()) - {1, -1}:
        raise Disagreement(f"{what}: weights {odd}")


def _compare(what: str, found: Counter[Row], expected: Counter[Row]) -> None:
    if found != expected:
        difference = _difference(found, expected)
        shown = "\n".join(f"  {weight:+d} {row}" for row, weight in list(difference.items())[:20])
        raise Disagreement(f"{what} (+ missing, - too many):\n{shown}")


def _difference(found: Counter[Row], expected: Counter[Row]) -> Counter[Row]:
    difference = Counter(expected)
    difference.subtract(found)
    return Counter({row: weight for row, weight in difference.items() if weight})


def _name_of(leaf: Scan | Step) -> str:
    return _step(leaf.name) if isinstance(leaf, Step) else _table(leaf.table, leaf.face)


def _table(name: str, face: Face) -> str:
    return f"{name.removeprefix(f'{DEFAULT_SCHEMA}.')}@{face.value}"


def _step_rows(rows: pa.Table) -> pa.Table:
    """What a step made. DuckDB takes a column of bare NULLs for whole numbers, and would not compare it with a date."""
    for place, name in enumerate(rows.column_names):
        column = rows.column(place)
        if pa.types.is_int32(column.type) and column.null_count == len(column):
            rows = rows.set_column(place, name, pa.nulls(len(column)))
    return rows


def _step(name: str) -> str:
    return f"{name}@step"
