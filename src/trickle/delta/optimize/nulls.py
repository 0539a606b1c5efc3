"""Leave out what asks for NULL where there is none.

``NOT IN`` and its like ask both sides for NULL, and mostly there is none: the statistics of a table's files say so, and
rows at hand can be counted. Then

    filter         that asks for it: nothing
    inner, semi    join on a condition that asks for it: nothing
    anti, left     join: the left [with NULLs]

and what is left is often another step as it is. A column without NULL passes through filters, joins that do not fill up
with NULL, unions where all parts have none, the keys of aggregates, and projections that hand it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.delta.optimize.prune import nothing, prune
from trickle.delta.reach import conjuncts
from trickle.operators import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Operator,
    Project,
    Scan,
    Step,
    TopK,
    UnionAll,
    Window,
    walk,
)

HasNoNull = Callable[[Scan | Step, str], bool]
"""Whether a leaf is known to have no NULL in a column of its table."""


@dataclass
class Removal:
    """A tree on its way to the same relation without the parts that are empty for lack of NULL."""

    has_no_null: HasNoNull
    answers: list[bool] = field(default_factory=list)
    """Whether each question for NULL was in vain, in the order of the tree. They tell what was left out."""

    def tree(self, tree: Operator) -> Operator:
        """The tree without these parts; itself when there are none."""
        if not any(map(_questions, walk(tree))):
            return tree
        less = self._less(tree)[0]
        return tree if less is tree else prune(less)

    def _less(self, node: Operator) -> tuple[Operator, frozenset[str]]:
        """The node without these parts below, and its columns that have no NULL."""
        found = [self._less(child) for child in node.inputs]
        if any(new is not old for (new, _), old in zip(found, node.inputs, strict=True)):
            node = node.with_inputs([new for new, _ in found])
        return self._alone(node, [full for _, full in found])

    def _alone(self, node: Operator, full: list[frozenset[str]]) -> tuple[Operator, frozenset[str]]:
        match node:
            case Scan() | Step():
                return node, frozenset(given for own, given in node.fields if self.has_no_null(node, own))
            case Filter() if self._asks_in_vain(node, full[0]):
                return nothing(node), frozenset(node.columns)
            case Join() if self._asks_in_vain(node, full[0] | full[1]):
                return replace(node, right=nothing(node.right)), full[0]
            case Join(kind=JoinKind.INNER):
                return node, full[0] | full[1]
            case Filter() | TopK() | Window() | Join():
                return node, full[0]
            case Project():
                handed_on = (
                    o.name for o in node.outputs if isinstance(o.value, exp.Column) and o.value.name in full[0]
                )
                return node, frozenset(handed_on)
            case Aggregate():
                return node, full[0] & frozenset(node.keys)
            case UnionAll():
                return node, frozenset.intersection(*full)
            case _:
                return node, frozenset()

    def _asks_in_vain(self, node: Operator, full: frozenset[str]) -> bool:
        """Whether a condition is true of no row, because a column that it wants to be NULL never is."""
        for column in _questions(node):
            self.answers.append(column in full)
            if self.answers[-1]:
                return True
        return False


def _questions(node: Operator) -> list[str]:
    """The columns that a condition wants to be NULL."""
    if not isinstance(node, Filter | Join) or node.condition is None:
        return []
    return [
        part.this.name
        for part in conjuncts(node.condition)
        if isinstance(part, exp.Is) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Null)
    ]
