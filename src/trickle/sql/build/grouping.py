"""GROUP BY and aggregate functions.

Everything that is computed after aggregation (SELECT, HAVING, QUALIFY, ORDER BY) is written over the keys and the calls
of aggregate functions: what equals a key becomes that key's column, a call becomes its column, equal calls share one.
Keys that are no columns are computed below.

GROUPING SETS, CUBE and ROLLUP are the union of one aggregate for each set, over the same input; the keys that a set
does not have are NULL, and GROUPING() is a constant in each branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trickle.errors import UserError
from trickle.operators import Aggregate, Expr, Filter, Operator, Output, Project, UnionAll, col, column_names
from trickle.sql.build.calls import GROUPING, call, function_hint, function_name, is_aggregate, window_functions
from trickle.sql.build.context import Context
from trickle.sql.build.grouping_sets import Grouping
from trickle.sql.build.subqueries import attached


@dataclass(frozen=True)
class Aggregated:
    """The tree after aggregation, the expressions over it, and the keys that have new names in it."""

    tree: Operator
    expressions: list[Expr]
    renamed: Mapping[str, str]


def has_aggregate(expression: Expr, more: frozenset[str]) -> bool:
    """Whether a call of an aggregate function is in an expression; that of OVER is none."""
    of_windows: set[int] = set()
    for node in expression.walk():
        if isinstance(node, exp.Window):
            of_windows.update(map(id, window_functions(node)))
        elif id(node) not in of_windows and (is_aggregate(node, more) or function_name(node) in GROUPING):
            return True
    return False


def aggregated(context: Context, tree: Operator, grouping: Grouping, expressions: Sequence[Expr]) -> Aggregated:
    """Aggregate, and write the expressions over the result."""
    collected = _Collected(context, grouping, {key: _key_name(context, tree, key) for key in grouping.keys})
    rewritten = [collected.rewritten(each) for each in expressions]
    tree = _prepared(context, tree, collected)
    for each in rewritten:
        _check_grouped(each, tree, collected)
    if not collected.calls and not all(grouping.sets):
        # The group of all rows is a row; an aggregate needs a column.
        collected.rows()
    if grouping.is_plain:
        return Aggregated(_aggregate(tree, tuple(collected.keys.values()), collected), rewritten, {})
    return _union(context, tree, collected, rewritten)


def _key_name(context: Context, tree: Operator, key: Expr) -> str:
    if isinstance(key, exp.Column) and key.name in tree.columns:
        return key.name
    return context.fresh("key" if not isinstance(key, exp.Dot) else key.expression.name)


@dataclass
class _Collected:
    context: Context
    grouping: Grouping
    keys: dict[Expr, str]
    calls: dict[Expr, str] = field(default_factory=dict)
    # GROUPING() and its kin: the column, and for each set the constant.
    markers: dict[Expr, str] = field(default_factory=dict)

    def rewritten(self, expression: Expr) -> Expr:
        of_windows: set[int] = set()

        def replaced(node: Expr) -> Expr:
            if node in self.keys and not self._stays(node):
                return col(self.keys[node])
            if isinstance(node, exp.Window):
                of_windows.update(map(id, window_functions(node)))
            if id(node) in of_windows:
                return node
            if function_name(node) in GROUPING:
                if node not in self.markers:
                    self.markers[node.copy()] = self.context.fresh(function_name(node))
                return col(self.markers[node])
            if is_aggregate(node, self.context.aggregates):
                if node not in self.calls:
                    self.calls[node.copy()] = self.context.fresh(function_hint(node))
                return col(self.calls[node])
            return node

        return expression.copy().transform(replaced, copy=False)

    def rows(self) -> str:
        """The column that counts the rows of each group."""
        count = call("count", exp.Star())
        if count not in self.calls:
            self.calls[count] = self.context.fresh("count")
        return self.calls[count]

    def _stays(self, key: Expr) -> bool:
        """A constant is one in every group, and some arguments must be constants."""
        return self.grouping.is_plain and isinstance(key, exp.Literal)


def _prepared(context: Context, tree: Operator, found: _Collected) -> Operator:
    """The input with the subqueries of keys and calls applied, and with the keys that must be computed."""
    calls = list(found.calls.items())
    keys = list(found.keys.items())
    before = set(tree.columns)
    tree, values = attached(context, tree, [*(key for key, _ in keys), *(value for value, _ in calls)])
    found.calls = {value: name for value, (_, name) in zip(values[len(keys) :], calls, strict=True)}
    computed = [
        Output(name, value)
        for value, (_, name) in zip(values, keys, strict=False)
        if name not in before and name not in tree.columns
    ]
    return Project(tree, (*Output.keep(tree.columns), *computed)) if computed else tree


def _check_grouped(expression: Expr, tree: Operator, found: _Collected) -> None:
    known = {*found.keys.values(), *found.calls.values(), *found.markers.values()}
    if loose := sorted((column_names(expression) - known) & set(tree.columns)):
        raise UserError(
            f"the column {loose[0]!r} is neither in GROUP BY nor in an aggregate function",
            hint=f"add it to GROUP BY, or write any_value({loose[0]})",
        )


def _aggregate(tree: Operator, keys: tuple[str, ...], found: _Collected) -> Operator:
    tree = Aggregate(tree, keys, tuple(Output(name, value) for value, name in found.calls.items()))
    if not found.markers or not found.grouping.is_plain:
        return tree
    # Without grouping sets nothing is rolled up.
    constants = (Output(name, _constant(node, 0)) for node, name in found.markers.items())
    return Project(tree, (*Output.keep(tree.columns), *constants))


def _union(context: Context, tree: Operator, found: _Collected, rewritten: list[Expr]) -> Aggregated:
    """One branch for each grouping set; the keys get new names, since they are NULL in some branches."""
    new = {name: context.fresh(name) for name in found.keys.values()}
    names = list(found.keys.values())
    branches: list[Operator] = []
    # In Spark, the group of all rows is there only if there are rows, unless it is the only one.
    rows = found.rows() if names and not context.standard and not all(found.grouping.sets) else None
    for group in found.grouping.sets:
        present = {names[place] for place in group}
        branch = _aggregate(tree, tuple(name for name in names if name in present), found)
        if rows is not None and not present:
            branch = Filter(branch, exp.GT(this=col(rows), expression=exp.Literal.number(0)))
        keys = [Output(new[name], col(name) if name in present else exp.null()) for name in names]
        marks = [Output(name, _constant(node, _bits(node, found, group))) for node, name in found.markers.items()]
        branches.append(Project(branch, (*keys, *Output.keep(found.calls.values()), *marks)))
    renamed = [_renamed(each, new) for each in rewritten]
    return Aggregated(UnionAll(tuple(branches)), renamed, new)


def _renamed(expression: Expr, names: Mapping[str, str]) -> Expr:
    def moved(node: Expr) -> Expr:
        return col(names[node.name]) if isinstance(node, exp.Column) and node.name in names else node

    return expression.transform(moved)


def _bits(node: Expr, found: _Collected, group: frozenset[int]) -> int:
    """One bit for each key, the first one highest: 1 where the key is rolled up."""
    keys = list(found.keys)
    wanted = [each.unnest() for each in node.expressions] or keys
    bits = 0
    for each in wanted:
        if each not in found.keys:
            raise UserError(f"{each.sql('spark')} is no key of GROUP BY, so GROUPING() cannot tell about it")
        bits = bits * 2 + (keys.index(each) not in group)
    return bits


def _constant(node: Expr, value: int) -> Expr:
    type_ = "tinyint" if function_name(node) == "grouping" else "bigint"
    return exp.cast(exp.Literal.number(value), type_)
