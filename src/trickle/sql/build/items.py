"""The SELECT list: stars written out, names resolved, generators apart.

An earlier alias can be used by later items (it stands for its expression), unless the input has a column of that name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, col
from trickle.sql.build.calls import function_name, unwrapped
from trickle.sql.build.context import Context
from trickle.sql.build.generators import Generator, generator, is_generator
from trickle.sql.build.resolve import Resolver, is_star
from trickle.sql.build.scope import Scope


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list: its visible name and its value."""

    name: str
    value: Expr

    def over(self, value: Expr) -> Item:
        return replace(self, value=value)


@dataclass
class Listed:
    """A SELECT list. A generator's columns are items whose values are columns that come with its rows."""

    items: list[Item] = field(default_factory=list)
    generators: list[Generator] = field(default_factory=list)
    aliases: dict[str, Expr] = field(default_factory=dict)

    def add(self, items: Iterable[Item], *, named: bool = False) -> None:
        for item in items:
            self.items.append(item)
            if named:
                self.aliases.setdefault(item.name.lower(), item.value)


def select_list(context: Context, select: exp.Select, scope: Scope) -> Listed:
    """The items of a SELECT list."""
    listed = Listed()
    for node in select.expressions:
        resolver = Resolver(context, scope, listed.aliases)
        if is_star(node):
            listed.add(Item(name, value) for name, value in resolver.star(node))
        else:
            _add(listed, node, resolver)
    return listed


def aliases_of(items: list[Item]) -> dict[str, Expr]:
    """What the names of the SELECT list stand for; the first wins."""
    found: dict[str, Expr] = {}
    for item in items:
        found.setdefault(item.name.lower(), item.value)
    return found


def _add(listed: Listed, node: Expr, resolver: Resolver) -> None:
    if isinstance(node, exp.QueryTransform):
        raise UnsupportedQuery("TRANSFORM ... USING is not supported")
    named = isinstance(node, exp.Alias | exp.Aliases)
    names = tuple(each.name for each in node.expressions) if isinstance(node, exp.Aliases) else (node.alias,)
    value = resolver.resolve(node.this if named else node)
    if is_generator(value):
        made = generator(resolver.context, value, names if named else (), resolver.scope)
        listed.generators.append(made)
        listed.add((Item(each.name, col(each.column)) for each in made.columns), named=True)
    elif len(names) > 1:
        raise UnsupportedQuery("several names for one column", detail=node.sql("spark")[:80])
    else:
        listed.add([Item(names[0] if named else shown_name(node), value)], named=named)


def shown_name(node: Expr) -> str:
    """What Spark calls a column without an alias, as nearly as matters inside of a query."""
    match node:
        case exp.Column() | exp.Dot():
            return node.name if isinstance(node, exp.Column) else node.expression.name
        case exp.Cast() if isinstance(node.this, exp.Column):
            return node.this.name
        case exp.Paren():
            return shown_name(node.this)
        case _:
            inner = unwrapped(node)
            if function_name(inner) == "count" and inner.expressions and isinstance(inner.expressions[0], exp.Star):
                return "count(1)"
            return node.sql("spark", normalize_functions=False)
