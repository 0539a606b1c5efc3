"""The types that PostgreSQL gives to the columns of a tree; no row is read for it.

A NULL has no type of its own, and PostgreSQL takes it for text unless it meets another value at once, which in a chain
of common table expressions it does not. So every NULL that a rule or a rewrite writes is cast to the type that its
column has elsewhere: a name is made once in a tree, or by all parts of a union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.errors import Error
from sqlglot import exp

from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta.fixpoint import anchored
from trickle.delta.parts import summed_argument
from trickle.delta.typed import typed_nulls
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.tables import Table
from trickle.operators import (
    Aggregate,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    walk,
)
from trickle.postgres.names import identifier
from trickle.sql.lower import lower

_EXACT = frozenset(("smallint", "integer", "bigint"))
_FLOATING = frozenset(("real", "double precision"))
OURS = {WEIGHT: "bigint", FILE: "integer", ROW: "tid", HIDDEN: "boolean"}
"""The types of columns that no query names."""


@dataclass
class Analyst:
    """Asks PostgreSQL about trees over tables."""

    connection: Connection[Any]
    tables: Mapping[str, Table]
    _known: dict[Operator, dict[str, str]] = field(default_factory=dict)

    def types_in(self, tree: Operator) -> dict[str, str]:
        """The types of all columns in a tree, by their names."""
        if tree not in self._known:
            known = dict(OURS)
            for node in dict.fromkeys(_post_order(anchored(tree))):
                if any(name not in known for name in node.columns):
                    for name, kind in self._described(node, known):
                        if not (isinstance(node, Project) and _is_null(node, name)):
                            known.setdefault(name, kind)
            self._known[tree] = known
        return self._known[tree]

    def columns_of(self, tree: Operator) -> list[tuple[str, str]]:
        """The columns of a tree with their types."""
        return self._described(tree, self.types_in(tree))

    def _described(self, tree: Operator, known: Mapping[str, str]) -> list[tuple[str, str]]:
        leaves = ", ".join(
            f"{identifier(one)} AS NOT MATERIALIZED (SELECT * FROM {table.sql})" for one, table in self.tables.items()
        )
        query = lower(typed_nulls(anchored(tree), known), _table_of, "postgres_own")
        try:
            with self.connection.transaction():
                found = self.connection.execute(f"WITH {leaves} SELECT * FROM ({query}) AS q LIMIT 0")
        except Error as error:
            raise UnsupportedQuery(
                "PostgreSQL refuses a part of the query", detail=str(error).split("\n", 1)[0], hint=_HINT
            ) from error
        result = found.pgresult
        assert result is not None
        kinds = [(result.ftype(n), result.fmod(n)) for n in range(result.nfields)]
        rows = self.connection.execute(
            "SELECT format_type(t.oid, t.mod) FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS t(oid, mod, place)"
            " ORDER BY place",
            [[oid for oid, _ in kinds], [modifier for _, modifier in kinds]],
        ).fetchall()
        return [(name, str(row[0])) for name, row in zip(tree.columns, rows, strict=True)]

    def has_hash(self, kind: str) -> bool:
        """Whether values of a type can be compared and hashed."""
        try:
            with self.connection.transaction():
                self.connection.execute(
                    f"SELECT hash_record_extended(ROW(NULL::{kind}), 0), NULL::{kind} = NULL::{kind}"
                )
        except Error:
            return False
        return True

    def types_of(self, aggregate: Aggregate) -> Sequence[tuple[str, str]]:
        """The types of what sums and means are taken of, in the words of ``delta/parts.py``."""
        wanted = [(c.name, argument) for c in aggregate.calls if (argument := summed_argument(c)) is not None]
        if not wanted:
            return ()
        arguments = Project(aggregate.input, tuple(Output(name, argument) for name, argument in wanted))
        return [(name, _word(kind)) for name, kind in self.columns_of(arguments)]

    def stored_types(self, plain: Operator, whole: Operator) -> Sequence[tuple[str, str]]:
        """Visible columns have the types that the query gives them, hidden ones their own."""
        visible = dict(self.columns_of(plain))
        return [(name, visible.get(name, kind)) for name, kind in self.columns_of(whole)]


def _is_null(node: Project, name: str) -> bool:
    return any(output.name == name and isinstance(output.value, exp.Null) for output in node.outputs)


def _post_order(tree: Operator) -> list[Operator]:
    return list(reversed(list(walk(tree))))


def _table_of(leaf: Scan | Step) -> str:
    assert isinstance(leaf, Scan)
    return leaf.table


def _word(kind: str) -> str:
    if kind in _EXACT or kind.startswith("numeric"):
        return "numeric"
    return "double" if kind in _FLOATING else kind


_HINT = "use another refresh mode, or write the query in another way"
