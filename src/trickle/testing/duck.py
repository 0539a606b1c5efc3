"""Plans on DuckDB, thousands a minute: the algebra is tested where a statement takes a millisecond.

duck = Duck()
duck.load_states("orders", old, new)
delta = duck.run(differentiate(tree))
assert applied(duck.text(query, Face.OLD), delta) == multiset(duck.text(query))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from trickle.algebra.names import DEFAULT_SCHEMA
from trickle.algebra.weights import FILE, ROW
from trickle.errors import UnknownTable, UnsupportedQuery
from trickle.operators import Face, Operator, Recursion, RecursiveRef, Scan, Step
from trickle.sql.lower import lower
from trickle.testing.connect import in_memory
from trickle.testing.multisets import Row, applied, multiset, weighted_difference
from trickle.testing.spark_text import to_duckdb

__all__ = ["Duck", "Row", "applied", "multiset", "weighted_difference"]

Rows: TypeAlias = "pa.Table | Sequence[Mapping[str, Any]]"

MAX_DEPTH = 100


class Duck:
    """A DuckDB in memory that runs operator trees, and users' queries in Spark SQL."""

    def __init__(self, max_depth: int = MAX_DEPTH) -> None:
        self._connection = in_memory()
        self._tables: dict[str, pa.Table] = {}
        self._max_depth = max_depth

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def load(self, name: str, face: Face, rows: Rows) -> None:
        """Give a table its rows at a face, in place of those it had."""
        self._register(_table_name(name, face), rows)

    def load_states(self, name: str, old: Rows, new: Rows) -> None:
        """Give a table its rows before and after, and its change."""
        before, after = _table(old), _table(new)
        self.load(name, Face.OLD, before)
        self.load(name, Face.NEW, after)
        self.load(name, Face.CHANGE, weighted_difference(before, after))

    def bind(self, step: str, rows: Rows) -> None:
        """Give the step of a plan its result."""
        self._register(_step_name(step), rows)

    def clear(self) -> None:
        """Forget all tables and steps."""
        for name in self._tables:
            self._connection.unregister(name)
        self._tables.clear()

    def run(self, tree: Operator) -> pa.Table:
        """The rows of a tree."""
        return _Run(self, self._max_depth).rows(tree)

    def sql(self, tree: Operator, *, pretty: bool = False) -> str:
        """The statement that runs a tree without recursion."""
        return lower(tree, self._name_of, "duckdb", pretty=pretty)

    def text(self, query: str, face: Face = Face.NEW) -> pa.Table:
        """The rows of a query in Spark SQL, with all tables at one face."""
        return self._fetch(to_duckdb(query, lambda name: self._known(_table_name(name, face))))

    def _fetch(self, statement: str) -> pa.Table:
        return self._connection.execute(statement).to_arrow_table()

    def _register(self, name: str, rows: Rows) -> None:
        table = _positive_zeros(_table(rows))
        self._tables[name] = table
        self._connection.register(name, table)

    def _known(self, name: str) -> str:
        if name not in self._tables:
            raise UnknownTable(f"{name} was not loaded", hint="known are " + (", ".join(self._tables) or "no tables"))
        return name

    def _name_of(self, leaf: Scan | Step) -> str:
        if isinstance(leaf, Step):
            return self._known(_step_name(leaf.name))
        name = self._known(_table_name(leaf.table, leaf.face))
        return self._located(name) if leaf.located else name

    def _located(self, name: str) -> str:
        located = f"{name}@located"
        table = self._tables[name]
        files = pa.array(["file"] * table.num_rows, pa.string())
        rows = pa.array(range(table.num_rows), pa.int64())
        self._register(located, table.append_column(FILE, files).append_column(ROW, rows))
        return located


class _Run:
    """One run of a tree. Recursion is iterated first, each equal one once; then what is left is one statement."""

    def __init__(self, duck: Duck, max_depth: int) -> None:
        self._duck = duck
        self._max_depth = max_depth
        self._made = 0
        self._done: dict[Recursion, str] = {}

    def rows(self, tree: Operator) -> pa.Table:
        return self._duck._fetch(self._duck.sql(self._without_recursion(tree, {})))

    def _without_recursion(self, tree: Operator, previous: Mapping[str, str]) -> Operator:
        match tree:
            case RecursiveRef(name, names):
                return self._step(previous[name], names)
            case Recursion():
                if previous:
                    return self._step(self._iterated(tree, previous), tree.names)
                if tree not in self._done:
                    self._done[tree] = self._iterated(tree, previous)
                return self._step(self._done[tree], tree.names)
            case _:
                inputs = [self._without_recursion(child, previous) for child in tree.inputs]
                return tree.with_inputs(inputs) if inputs else tree

    def _iterated(self, recursion: Recursion, previous: Mapping[str, str]) -> str:
        latest = self._part(recursion.base, recursion.names, previous)
        if recursion.distinct:
            latest = _unseen(latest, set())
        seen = set(multiset(latest))
        parts = [latest]
        while latest.num_rows:
            if len(parts) > self._max_depth:
                raise UnsupportedQuery(f"recursion {recursion.name} did not end after {self._max_depth} steps")
            bound = {**previous, recursion.name: self._hold(latest)}
            latest = self._part(recursion.step, recursion.names, bound)
            if recursion.distinct:
                latest = _unseen(latest, seen)
                seen.update(multiset(latest))
            parts.append(latest)
        return self._hold(pa.concat_tables(parts, promote_options="permissive"))

    def _part(self, tree: Operator, names: Sequence[str], previous: Mapping[str, str]) -> pa.Table:
        found = self._duck._fetch(self._duck.sql(self._without_recursion(tree, previous)))
        return found.rename_columns([f"c{place}" for place, _ in enumerate(names)])

    def _hold(self, rows: pa.Table) -> str:
        self._made += 1
        name = f"recursion {self._made}"
        self._duck.bind(name, rows)
        return name

    def _step(self, name: str, names: Sequence[str]) -> Step:
        return Step(name, tuple((f"c{place}", column) for place, column in enumerate(names)))


def _unseen(rows: pa.Table, seen: set[Row]) -> pa.Table:
    """The rows that were not there before, each once."""
    known = set(seen)
    places = []
    for place in range(rows.num_rows):
        (row,) = multiset(rows.slice(place, 1))
        if row not in known:
            known.add(row)
            places.append(place)
    return rows.take(pa.array(places, pa.int64()))


def _table(rows: Rows) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows])


def _positive_zeros(table: pa.Table) -> pa.Table:
    """Spark groups 0.0 and -0.0 together and DuckDB does not."""
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(place, field, pc.add(table.column(place), pa.scalar(0.0, field.type)))
    return table


def _table_name(name: str, face: Face) -> str:
    """A table's name as DuckDB knows it, however it was quoted.

    >>> _table_name("default.`My Orders`", Face.NEW)
    'my orders@new'
    """
    plain = name.replace("`", "").lower().removeprefix(f"{DEFAULT_SCHEMA}.")
    return f"{plain}@{face.value}"


def _step_name(name: str) -> str:
    return f"{name.lower()}@step"
