"""A user's query to a tree over tables, with PostgreSQL as the authority on what it means.

The query is made a view first. So PostgreSQL checks it, in the user's own dialect; says what its columns are called and
which types they have; gives its text with every name resolved; and, as the view stays, refuses to drop or change what
the query uses. Views that the query reads are looked through in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from trickle.algebra.names import TableName
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.parsing import (
    Function,
    Relation,
    functions,
    hidden_aggregates,
    parsed,
    refuse_clocks,
    relations,
    respelled,
    spelled,
)
from trickle.immediate.postgres.tables import Table, describe_table, is_view, label
from trickle.operators import Expr, Operator, Output, Project, Scan, renamed, walk
from trickle.postgres.names import identifier
from trickle.sql.build import build_root
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.copy import renamed_tree

_FUNCTIONS = """
    SELECT w.place, p.prokind::text, p.provolatile::text, p.proretset, p.oid::regprocedure::text
    FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS w(space, name, place)
    JOIN pg_proc p ON p.proname = w.name JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = w.space
"""
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = %s AND attnum > 0 ORDER BY attnum
"""
# ROWS 2 PRECEDING is short for ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, which is how we write it.
_FRAME = re.compile(r"\b(ROWS|RANGE|GROUPS) (?!BETWEEN)(.{1,80}? PRECEDING)")
_WHOLE_FRAME = r"\1 BETWEEN \2 AND CURRENT ROW"
_SESSION = frozenset(
    (
        "clock_timestamp",
        "current_setting",
        "now",
        "statement_timestamp",
        "transaction_timestamp",
        "inet_client_addr",
        "pg_backend_pid",
    )
)


@dataclass(frozen=True)
class Reading:
    """A query's tree. Its columns are ``v1``, ``v2``, ..., which stand for ``names``; tables go by their labels."""

    tree: Operator
    names: tuple[str, ...]
    types: tuple[str, ...]
    tables: Mapping[str, Table]


@dataclass
class _Found:
    """What a query reads, as far as it is known."""

    connection: Connection[Any]
    tables: dict[str, Table] = field(default_factory=dict)
    views: dict[TableName, str] = field(default_factory=dict)
    trees: dict[str, Expr] = field(default_factory=dict)
    aggregates: set[Function] = field(default_factory=set)

    def definition(self, oid: int) -> str:
        """The text of a view; equal texts are the same view's."""
        row = self.connection.execute("SELECT pg_get_viewdef(%s::oid)", [oid]).fetchone()
        assert row is not None
        text = str(row[0]).strip().rstrip(";")
        if text not in self.trees:
            tree = parsed(text)
            self._check_reading(tree, text)
            refuse_clocks(tree)
            self._look_up(functions(tree))
            labels = {each: self._relation(each) for each in relations(tree)}
            self.trees[text] = respelled(tree, labels, frozenset(self.aggregates))
        return text

    def _relation(self, relation: Relation) -> str:
        row = self.connection.execute(
            "SELECT %s::regclass::oid", [identifier(relation.schema, relation.name)]
        ).fetchone()
        assert row is not None
        oid = int(row[0])
        if is_view(self.connection, oid):
            self.views[TableName.of([label(oid)])] = self.definition(oid)
        elif label(oid) not in self.tables:
            self.tables[label(oid)] = describe_table(self.connection, oid)
        return label(oid)

    def _check_reading(self, tree: Expr, text: str) -> None:
        """Our reading of the text, given back to PostgreSQL, must be the same query."""
        name = "trickle_reading"
        self.connection.execute(f"CREATE TEMPORARY VIEW {name} AS {spelled(tree)}")
        row = self.connection.execute(f"SELECT pg_get_viewdef('pg_temp.{name}'::regclass)").fetchone()
        self.connection.execute(f"DROP VIEW pg_temp.{name}")
        assert row is not None
        again = str(row[0]).strip().rstrip(";")
        if _FRAME.sub(_WHOLE_FRAME, again) != _FRAME.sub(_WHOLE_FRAME, text):
            lines = zip(text.splitlines(), again.splitlines(), strict=False)
            differs = next((one for one, other in lines if one != other), text[:80])
            raise UnsupportedQuery("a construct of the query cannot be read", detail=differs.strip())

    def _look_up(self, called: set[Function]) -> None:
        wanted = sorted(called, key=lambda each: (each.schema or "", each.name))
        rows = self.connection.execute(
            _FUNCTIONS, [[each.schema or "pg_catalog" for each in wanted], [each.name for each in wanted]]
        ).fetchall()
        for place, kind, volatility, is_set, signature in rows:
            function = wanted[place - 1]
            if kind == "a":
                self.aggregates.add(function)
            if volatility == "v" or (function.schema is None and function.name in _SESSION):
                raise UnsupportedQuery(
                    f"{signature} does not give the same value for the same row every time",
                    detail="a row could not be found again when it goes",
                )
            if is_set:
                raise UnsupportedQuery(
                    f"{signature} makes rows, which IMMEDIATE does not follow", hint="use another refresh mode"
                )


def read_query(connection: Connection[Any], view: int, max_depth: int) -> Reading:
    """The tree of a view's query. The connection's search path must be pg_catalog alone."""
    found = _Found(connection)
    text = found.definition(view)
    columns = connection.execute(_COLUMNS, [view]).fetchall()
    schemas = {
        TableName.of([one]): {column.name: "" for column in table.columns} for one, table in found.tables.items()
    }
    names = [f"v{place}" for place, _ in enumerate(columns, start=1)]
    built = build_root(
        found.trees[text],
        schemas,
        views=found.views,
        tree_of=found.trees.__getitem__,
        names=names,
        aggregates=hidden_aggregates(frozenset(found.aggregates)),
        max_depth=max_depth,
    )
    tree = _short_names(rewrite(built), names)
    used = {node.table for node in walk(tree) if isinstance(node, Scan)}
    return Reading(
        tree=tree,
        names=tuple(name for name, _ in columns),
        types=tuple(kind for _, kind in columns),
        tables={one: table for one, table in found.tables.items() if one in used},
    )


def _short_names(tree: Operator, visible: list[str]) -> Operator:
    """The tree with names that cannot be too long for PostgreSQL, whatever is put before them."""
    top = tree if isinstance(tree, Project) else Project(tree, Output.keep(visible))
    names: dict[str, str] = {}
    for node in walk(top.input):
        for name in node.columns:
            names.setdefault(name, f"c{len(names) + 1}")
    outputs = tuple(Output(output.name, renamed(output.value, names)) for output in top.outputs)
    return Project(renamed_tree(top.input, names), outputs)
