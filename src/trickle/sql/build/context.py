"""What all parts of the builder share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.algebra.names import TableName
from trickle.operators import Operator, Output, Project, col
from trickle.sql.build.names import Names
from trickle.sql.build.scope import Relation, Scope, Visible

Schemas = Mapping[TableName, Mapping[str, str]]


@dataclass(frozen=True)
class Built:
    """A query's tree and its columns in order. Two columns may be the same column of the tree."""

    tree: Operator
    columns: tuple[Visible, ...]

    def relation(self, alias: str | None) -> Relation:
        return Relation.of(self.tree, self.columns, alias)


@dataclass(frozen=True)
class Pending:
    """A subquery inside an expression, kept until it is known over which operator the expression is computed."""

    node: exp.Expr
    query: exp.Expr
    scope: Scope


@dataclass(frozen=True)
class Context:
    """The tables and views there are, names to give out, and the way back to the builder of queries."""

    schemas: Schemas
    views: Mapping[TableName, str]
    aggregates: frozenset[str]
    max_depth: int
    query: Callable[[Context, exp.Expr, Scope], Built]
    text: Callable[[Context, str], Built]
    names: Names = field(default_factory=Names)
    pending: list[Pending] = field(default_factory=list)
    standard: bool = False
    open_views: tuple[TableName, ...] = ()

    def inside_view(self, name: TableName) -> Context:
        return replace(self, open_views=(*self.open_views, name))

    def number_of(self, subquery: Pending) -> int:
        """The number of a subquery; the same for equal ones of the same scope."""
        for number, known in enumerate(self.pending):
            if known.scope is subquery.scope and known.node == subquery.node:
                return number
        self.pending.append(subquery)
        return len(self.pending) - 1

    def fresh(self, hint: str) -> str:
        return self.names.fresh(hint)


def in_order(context: Context, built: Built) -> Operator:
    """A tree whose columns are those of the query, by place."""
    names = [each.column for each in built.columns]
    if tuple(names) == built.tree.columns:
        return built.tree
    outputs: dict[str, Output] = {}
    for name in names:
        own = context.fresh(name) if name in outputs else name
        outputs[own] = Output(own, col(name))
    return Project(built.tree, tuple(outputs.values()))
