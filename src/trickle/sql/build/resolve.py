"""Expressions over names to expressions over columns of the tree.

A subquery becomes a call of ``SUBQUERY`` with its number and the operands that stand outside of it
(``a IN (SELECT ...)`` is ``SUBQUERY(7, a)``), so that everything that rewrites expressions treats the operands rightly.
Equal subqueries of one scope get the same number, so equal expressions stay equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trickle.errors import UnsupportedQuery, UserError
from trickle.operators import Expr, col
from trickle.sql.build.calls import call
from trickle.sql.build.context import Context, Pending
from trickle.sql.build.negations import SUBQUERY
from trickle.sql.build.scope import Scope, fields_of
from trickle.sql.build.types import struct_fields

# Spark takes these for functions even without parentheses, when there is no such column.
_BARE_FUNCTIONS = frozenset(
    (
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtimestamp",
        "session_user",
        "user",
    )
)
_ATOMS = (exp.Column, exp.Literal, exp.Paren, exp.Dot, exp.Bracket, exp.Null, exp.Boolean)


@dataclass(frozen=True)
class Resolver:
    """Resolves names in a scope. ``aliases`` are columns of the SELECT list, which the scope's own columns hide."""

    context: Context
    scope: Scope
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    # ORDER BY looks at the SELECT list first.
    aliases_first: bool = False

    def resolve(self, expression: Expr) -> Expr:
        """The expression over columns of the tree."""
        return expression.copy().transform(self._replaced, copy=False)

    def _replaced(self, node: Expr) -> Expr:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Anonymous():
                return self._function(node)
            case exp.Any() if not isinstance(node.parent, exp.Like | exp.ILike | exp.RegexpLike):
                # The aggregate function any(): the quantifier is met before, with its comparison.
                return call("any", self.resolve(node.this.unnest()))
            case exp.GroupConcat() if node.args.get("separator") is None:
                # Spark puts nothing between the values, and sqlglot would write a comma.
                node.set("separator", exp.Literal.string(""))
                return node
            case exp.Distinct() if any(map(is_star, node.expressions)):
                return exp.Distinct(expressions=self._arguments(node.expressions))
            case exp.Exists() | exp.Subquery():
                return self._subquery(node, node.this, [])
            case exp.In() if node.args.get("query"):
                left = node.this.unnest()
                operands = left.expressions if isinstance(left, exp.Tuple) else [left]
                return self._subquery(node, node.args["query"], operands)
            case exp.Binary() if isinstance(node.expression, exp.All | exp.Any) and _is_query(node.expression.this):
                return self._subquery(node, node.expression.this, [node.this])
            case exp.Query():
                raise UnsupportedQuery("a query stands where a value is expected", hint="put it in parentheses")
            case _:
                return node

    def _function(self, node: exp.Anonymous) -> Expr:
        name = node.name.lower()
        is_count = name == "count" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
        if not is_count and any(map(is_star, node.expressions)):
            return call(name, *self._arguments(node.expressions))
        node.set("this", name)
        return node

    def _arguments(self, arguments: Sequence[Expr]) -> list[Expr]:
        found: list[Expr] = []
        for argument in arguments:
            if is_star(argument):
                found += (value for _, value in self.star(argument))
            else:
                found.append(self.resolve(argument))
        return found

    def _column(self, node: exp.Column) -> Expr:
        parts = [part.name for part in node.parts]
        alias = self.aliases.get(parts[0].lower())
        if alias is not None and self.aliases_first and self._is_alias(parts):
            return fields_of(enclosed(alias), parts[1:])
        if found := self.scope.find_here(parts):
            return found.value
        if alias is not None:
            return fields_of(enclosed(alias), parts[1:])
        if found := self.scope.find_outside(parts):
            return found.value
        if len(parts) == 1 and parts[0].lower() in _BARE_FUNCTIONS and not node.this.args.get("quoted"):
            return call(parts[0].lower())
        if parts[0].lower() == "grouping__id":
            return call("grouping_id")
        raise self.scope.unknown(parts)

    def _is_alias(self, parts: Sequence[str]) -> bool:
        """``t.a`` is no field of the alias t where t is a table."""
        return len(parts) == 1 or self.scope.star(parts[:1]) is None

    def _subquery(self, node: Expr, query: Expr, operands: Sequence[Expr]) -> Expr:
        number = self.context.number_of(Pending(node.copy(), query, self.scope))
        return call(SUBQUERY, exp.Literal.number(number), *map(self.resolve, operands))

    def star(self, node: Expr) -> list[tuple[str, Expr]]:
        """What ``*``, ``t.*`` and ``s.*`` stand for: visible names and values."""
        star = node if isinstance(node, exp.Star) else node.this
        qualifier = [part.name for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
        columns = self.scope.star(qualifier)
        pairs = [(c.name, col(c.column)) for c in columns] if columns is not None else self._fields(qualifier)
        if star.args.get("replace") or star.args.get("rename"):
            raise UnsupportedQuery("* REPLACE and * RENAME are not supported", hint="name the columns")
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        if missing := left_out - {name.lower() for name, _ in pairs}:
            raise self.scope.unknown([min(missing)])
        return [(name, value) for name, value in pairs if name.lower() not in left_out]

    def _fields(self, parts: list[str]) -> list[tuple[str, Expr]]:
        found = self.scope.find_here(parts) or self.scope.find_outside(parts)
        if found is None:
            raise UserError(f"no table or struct {'.'.join(parts)!r} for {'.'.join(parts)}.*")
        names = struct_fields(found.visible.type, found.fields)
        if names is None:
            raise UnsupportedQuery(f"the fields of {'.'.join(parts)}.* are not known", hint="name the fields")
        return [(name, fields_of(found.value, (name,))) for name in names]


def is_star(node: Expr) -> bool:
    """Whether a node is ``*`` or ``t.*``."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def enclosed(value: Expr) -> Expr:
    """A copy that can stand anywhere: in parentheses where an operator around it could bind tighter."""
    bare = value.copy()
    # AND is a function too, for sqlglot.
    is_call = isinstance(bare, exp.Func) and not isinstance(bare, exp.Binary | exp.Unary)
    return bare if is_call or isinstance(bare, _ATOMS) else exp.Paren(this=bare)


def bare(expression: Expr) -> Expr:
    """The expression without parentheses around a single column or value, left by what was replaced."""

    def opened(node: Expr) -> Expr:
        return node.this if isinstance(node, exp.Paren) and isinstance(node.this, _ATOMS) else node

    return expression.transform(opened)


def _is_query(node: Expr) -> bool:
    return isinstance(node.unnest(), exp.Query)
