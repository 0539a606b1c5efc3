"""The SELECT list: stars written out, names resolved, generators apart.

An earlier alias can be used by later items (it stands for its expression), unless the input has a column of that name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr
from trickle.sql.build.calls import function_name, unwrapped
from trickle.sql.build.context import Context
from trickle.sql.build.generators import is_generator
from trickle.sql.build.resolve import Resolver, is_star
from trickle.sql.build.scope import Scope


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list: its visible name and its value.

    A generator is one item that makes several columns; ``names`` are those that the user gave them.
    """

    name: str
    value: Expr
    names: tuple[str, ...] = ()

    @property
    def is_generator(self) -> bool:
        return is_generator(self.value)

    def over(self, value: Expr) -> Item:
        return replace(self, value=value)


def select_items(context: Context, select: exp.Select, scope: Scope) -> list[Item]:
    """The items of a SELECT list."""
    aliases: dict[str, Expr] = {}
    items: list[Item] = []
    for node in select.expressions:
        resolver = Resolver(context, scope, aliases)
        if is_star(node):
            items += (Item(name, value) for name, value in resolver.star(node))
            continue
        item = _item(node, resolver)
        items.append(item)
        if isinstance(node, exp.Alias):
            aliases.setdefault(item.name.lower(), item.value)
    return items


def aliases_of(items: list[Item]) -> dict[str, Expr]:
    """What the names of the SELECT list stand for; the first wins."""
    found: dict[str, Expr] = {}
    for item in items:
        found.setdefault(item.name.lower(), item.value)
    return found


def _item(node: Expr, resolver: Resolver) -> Item:
    if isinstance(node, exp.QueryTransform):
        raise UnsupportedQuery("TRANSFORM ... USING is not supported")
    match node:
        case exp.Aliases():
            value = resolver.resolve(node.this)
            names = tuple(each.name for each in node.expressions)
            if not is_generator(value):
                raise UnsupportedQuery("several names for one column", detail=node.sql("spark")[:80])
            return Item(names[0], value, names)
        case exp.Alias():
            value = resolver.resolve(node.this)
            return Item(node.alias, value, (node.alias,) if is_generator(value) else ())
        case _:
            return Item(shown_name(node), resolver.resolve(node))


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
