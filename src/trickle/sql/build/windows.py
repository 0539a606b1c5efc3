"""Window functions: one Window for each distinct PARTITION BY, computed after aggregation.

Partition keys that are no columns are computed below. Named windows are written out before names are resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trickle.errors import UserError
from trickle.operators import Expr, Operator, Output, Project, Window, col
from trickle.sql.build.calls import function_hint
from trickle.sql.build.context import Context


def spelled_out(select: exp.Select) -> exp.Select:
    """The query with the named windows of its WINDOW clause written where they are used."""
    named = {each.name.lower(): each for each in select.args.get("windows") or ()}
    if not named and not any(each.args.get("alias") for each in select.find_all(exp.Window)):
        return select
    select = select.copy()
    definitions = {name: _followed(each, named) for name, each in named.items()}
    select.set("windows", None)
    for window in list(select.find_all(exp.Window)):
        if window.parent_select is select:
            _inherit(window, definitions)
    return select


def _followed(window: Expr, named: dict[str, exp.Window]) -> Expr:
    """A definition may be another's name: WINDOW w AS (PARTITION BY a), v AS w."""
    copy = window.copy()
    _inherit(copy, named)
    return copy


def _inherit(window: Expr, definitions: dict[str, Expr] | dict[str, exp.Window]) -> None:
    alias = window.args.get("alias")
    if alias is None:
        return
    definition = definitions.get(alias.name.lower())
    if definition is None:
        raise UserError(f"no window {alias.name!r}", hint="define it: WINDOW name AS (PARTITION BY ...)")
    for part in ("partition_by", "order", "spec"):
        value = definition.args.get(part)
        if value and not window.args.get(part):
            window.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
    window.set("alias", None)


@dataclass
class _Collected:
    context: Context
    names: dict[Expr, str] = field(default_factory=dict)

    def replaced(self, node: Expr) -> Expr:
        if not isinstance(node, exp.Window):
            return node
        if node not in self.names:
            self.names[node.copy()] = self.context.fresh(function_hint(node.this))
        return col(self.names[node])


def windowed(context: Context, tree: Operator, expressions: Sequence[Expr]) -> tuple[Operator, list[Expr]]:
    """The tree with a Window for each partition, and the expressions over their results."""
    found = _Collected(context)
    rewritten = [each.copy().transform(found.replaced, copy=False) for each in expressions]
    if not found.names:
        return tree, rewritten
    tree, name_of = _with_keys(context, tree, [key for window in found.names for key in _keys(window)])
    partitions: dict[frozenset[str], tuple[tuple[str, ...], list[Output]]] = {}
    for window, name in found.names.items():
        keys = tuple(dict.fromkeys(name_of(key) for key in _keys(window)))
        keys, calls = partitions.setdefault(frozenset(keys), (keys, []))
        value = window.copy()
        value.set("partition_by", [col(key) for key in keys] or None)
        calls.append(Output(name, value))
    for keys, calls in partitions.values():
        tree = Window(tree, keys, tuple(calls))
    return tree, rewritten


def _keys(window: Expr) -> list[Expr]:
    return [key.unnest() for key in window.args.get("partition_by") or ()]


def _with_keys(context: Context, tree: Operator, keys: Sequence[Expr]) -> tuple[Operator, Callable[[Expr], str]]:
    """The tree with a column for each key."""
    computed: dict[Expr, str] = {}
    for key in keys:
        if not _is_column_of(tree, key) and key not in computed:
            computed[key] = context.fresh("key")
    if computed:
        outputs = tuple(Output(name, key) for key, name in computed.items())
        tree = Project(tree, (*Output.keep(tree.columns), *outputs))
    return tree, lambda key: computed.get(key) or key.name


def _is_column_of(tree: Operator, key: Expr) -> bool:
    return isinstance(key, exp.Column) and key.name in tree.columns
