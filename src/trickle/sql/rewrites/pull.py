"""Takes the correlated conjuncts out of a subquery, so that what remains can be joined as it is.

``pull(R)`` gives a relation R' and conjuncts C such that, for every row of the outside, R is R' filtered by C. It is
the cheap way to unnest: nothing of the outside is computed twice. It is not always possible, and then gives None:

    filter          correlated conjuncts go up, any comparison
    project         columns that C needs are carried along; a correlated output is handed up as a value
    inner join      C of both sides, and the correlated conjuncts of its condition
    left, semi,     C of the left; the right and the condition must not be correlated
    anti join
    aggregate,      only matches ``inner = outer``: the inner side becomes one more key. For one row of the outside it
    window, top-k   has one value among the rows that match, so the groups are the same (NULL matches nothing)
    others          not

When it does not matter how often a row is there (``existential``), a semi join may become an inner join, and DISTINCT
falls away: then more can be pulled.

A match is taken to hold for one value of the inner side only. Where ``=`` compares values of different types after a
conversion which maps several of them to one ('1' and '01' to 1), this does not hold. Such a conversion is written in
the tree before (``convert``), and then the converted value is the key; where types are not known, nothing is pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    TopK,
    Window,
    column_names,
    free_columns,
)
from trickle.sql.rewrites.conditions import all_of, conjuncts, is_volatile, matches_of, resolved
from trickle.sql.rewrites.keyed import first_of_each, joined_on, merged, window_over, with_keys
from trickle.sql.rewrites.names import Names


@dataclass(frozen=True)
class Flat:
    """A subquery without references to the outside: for a row of it, ``tree`` filtered by ``conjuncts``.

    ``tree`` may have more columns than the subquery. ``values`` are the subquery's columns that it does not have, as
    expressions over both sides.
    """

    tree: Operator
    conjuncts: tuple[Expr, ...] = ()
    values: Mapping[str, Expr] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def needed(self) -> frozenset[str]:
        return frozenset().union(*map(column_names, (*self.conjuncts, *self.values.values())))


def pull(tree: Operator, outer: AbstractSet[str], names: Names, *, existential: bool) -> Flat | None:
    """The subquery without the conjuncts that use columns of the outside; None when they cannot be taken out."""
    return _Pull(frozenset(outer), names).flat(tree, existential)


@dataclass(frozen=True)
class _Pull:
    outer: frozenset[str]
    names: Names

    def flat(self, node: Operator, existential: bool) -> Flat | None:
        if not free_columns(node) & self.outer:
            return Flat(node)
        match node:
            case Filter():
                return self.filter(node, existential)
            case Project():
                return self.project(node, existential)
            case Generate():
                return self.generate(node, existential)
            case Join():
                return self.join(node, existential)
            case Aggregate():
                return self.aggregate(node, existential)
            case Window():
                return self.window(node)
            case TopK():
                return self.top(node)
            case _:
                return None

    def correlated(self, expression: Expr) -> bool:
        return bool(column_names(expression) & self.outer)

    def split(self, condition: Expr | None, values: Mapping[str, Expr]) -> tuple[list[Expr], list[Expr]] | None:
        """The conjuncts that stay and those that go up."""
        parts = [resolved(part, values) for part in conjuncts(condition)]
        up = [part for part in parts if self.correlated(part)]
        if any(map(is_volatile, parts)):
            return None
        return [part for part in parts if not self.correlated(part)], up

    def filter(self, node: Filter, existential: bool) -> Flat | None:
        below = self.flat(node.input, existential)
        split = below and self.split(node.condition, below.values)
        if not below or not split:
            return None
        stay, up = split
        condition = all_of(stay)
        tree = below.tree if condition is None else Filter(below.tree, condition)
        return Flat(tree, (*below.conjuncts, *up), below.values)

    def project(self, node: Project, existential: bool) -> Flat | None:
        below = self.flat(node.input, existential)
        if below is None:
            return None
        computed = {output.name: resolved(output.value, below.values) for output in node.outputs}
        values = {name: value for name, value in computed.items() if self.correlated(value)}
        if any(map(is_volatile, values.values())):
            return None
        outputs = [Output(name, value) for name, value in computed.items() if name not in values]
        flat = Flat(below.tree, below.conjuncts, values)
        made = {output.name for output in outputs}
        carried = [name for name in below.tree.columns if name in flat.needed and name not in made]
        tree = Project(below.tree, (*outputs, *Output.keep(carried))) if outputs or carried else below.tree
        return replace(flat, tree=tree)

    def generate(self, node: Generate, existential: bool) -> Flat | None:
        below = self.flat(node.input, existential)
        if below is None or self.correlated(resolved(node.generator, below.values)):
            return None
        return replace(below, tree=Generate(below.tree, node.generator, node.names, node.outer))

    def join(self, node: Join, existential: bool) -> Flat | None:
        left = self.flat(node.left, existential)
        if left is None:
            return None
        if node.kind is not JoinKind.INNER:
            split = self.split(node.condition, left.values)
            if split and not split[1] and not free_columns(node.right) & self.outer:
                return replace(left, tree=replace(node, left=left.tree))
            if node.kind is not JoinKind.SEMI or not existential:
                return None
        right = self.flat(node.right, existential)
        values = {**left.values, **(right.values if right else {})}
        split = self.split(node.condition, values)
        if right is None or split is None:
            return None
        stay, up = split
        tree = Join(JoinKind.INNER, left.tree, right.tree, all_of(stay))
        return Flat(tree, (*left.conjuncts, *right.conjuncts, *up), values)

    def aggregate(self, node: Aggregate, existential: bool) -> Flat | None:
        if existential and not node.calls:
            return self.flat(Project(node.input, Output.keep(node.keys)), existential)
        if not node.keys or any(map(self.correlated, node.expressions)):
            return None
        found = self.keyed(node.input, node.used)
        if found is None:
            return None
        tree, keys, up = found
        return Flat(Aggregate(tree, merged(node.keys, keys), node.calls), up)

    def window(self, node: Window) -> Flat | None:
        if any(map(self.correlated, node.expressions)):
            return None
        found = self.keyed(node.input, node.used)
        if found is None:
            return None
        tree, keys, up = found
        partition = merged(node.partition, keys)
        calls = tuple(Output(call.name, window_over(call.value, partition)) for call in node.calls)
        return Flat(Window(tree, partition, calls), up)

    def top(self, node: TopK) -> Flat | None:
        found = self.keyed(node.input, frozenset(node.columns))
        if found is None:
            return None
        tree, keys, up = found
        return Flat(first_of_each(tree, keys, node, self.names), up)

    def keyed(
        self, node: Operator, used: AbstractSet[str]
    ) -> tuple[Operator, tuple[str, ...], tuple[Expr, ...]] | None:
        """The input of an operator that looks at rows together: with keys, when all that goes up are matches."""
        below = self.flat(node, existential=False)
        if below is None or used & below.values.keys():
            return None
        matches = matches_of(below.conjuncts, set(below.tree.columns), self.names.is_exact)
        if matches is None:
            return None
        tree, keys = with_keys(below.tree, matches, self.names)
        return tree, keys, joined_on(matches, keys)
