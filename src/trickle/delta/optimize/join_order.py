"""Joins begin with the change.

The rule for inner joins leaves ``(A_new * B_new) * dC``, in which the two big tables would be joined first. Inner joins
may be done in any order: a run of them is taken apart into its inputs and conditions, and put together again from the
input that is small (it holds a change, or an earlier step), adding one input after the other that a condition ties to
what is there. What has been joined so far stays the small side all the way.

A semi or anti join inside of the run is a filter too: it is asked last, of the few rows that are left.

Safe because inner joins are associative and commutative, and filters between them commute with them; the columns are
brought back into their order at the end. Outer joins are inputs here: nothing moves across them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from trickle.delta.building import both
from trickle.delta.reach import conjuncts
from trickle.operators import (
    Aggregate,
    Expr,
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    column_names,
)


def order_joins(tree: Operator) -> Operator:
    """The tree with every run of inner joins in the order that begins with its change."""
    if isinstance(tree, Join) and tree.kind is JoinKind.INNER:
        run = _Run()
        run.take(tree)
        if len(run.inputs) > 1 and any(map(is_small, run.inputs)):
            return run.ordered(tree.columns)
    inputs = [order_joins(child) for child in tree.inputs]
    return tree.with_inputs(inputs) if inputs else tree


def is_small(tree: Operator, below: Callable[[Operator], bool] | None = None) -> bool:
    """Whether a relation grows with the change only: every way down through its joins ends at a change or a step.

    ``below`` answers for the inputs where that is known already.
    """
    below = below or is_small
    match tree:
        case Scan():
            return tree.face is Face.CHANGE
        case Step():
            return True
        case Join():
            # A semi join with something small is small enough: it keeps the rows that answer to it.
            one_is_small = tree.kind in (JoinKind.INNER, JoinKind.SEMI)
            return below(tree.left) or (one_is_small and below(tree.right))
        case Aggregate() if not tree.keys:
            return True
        case _:
            return bool(tree.inputs) and all(map(below, tree.inputs))


@dataclass
class _Run:
    """The inputs and conditions of a run of inner joins."""

    inputs: list[Operator] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    tests: list[Join] = field(default_factory=list)
    """Semi and anti joins, which only leave out rows."""

    def take(self, tree: Operator) -> None:
        match tree:
            case Join() if tree.kind is JoinKind.INNER:
                self.take(tree.left)
                self.take(tree.right)
                self._note(tree.condition)
            case Filter() if _is_run(tree.input):
                self.take(tree.input)
                self._note(tree.condition)
            case Project() if _is_run(tree.input) and _passes(tree):
                self.take(tree.input)
            case Join() if tree.kind in (JoinKind.SEMI, JoinKind.ANTI) and not is_small(tree):
                self.take(tree.left)
                self.tests.append(replace(tree, right=order_joins(tree.right)))
            case _:
                self.inputs.append(order_joins(tree))

    def ordered(self, columns: Sequence[str]) -> Operator:
        left = list(self.inputs)
        start = next(place for place, one in enumerate(left) if is_small(one))
        made = left.pop(start)
        waiting = list(self.conditions)
        while left:
            following = left.pop(_next(made, left, waiting))
            known = {*made.columns, *following.columns}
            ready = [condition for condition in waiting if column_names(condition) <= known]
            waiting = [condition for condition in waiting if condition not in ready]
            made = Join(JoinKind.INNER, made, following, both(*ready) if ready else None, small="left")
        if waiting:
            made = Filter(made, both(*waiting))
        for test in self.tests:
            made = replace(test, left=made)
        return made if made.columns == tuple(columns) else Project(made, Output.keep(columns))

    def _note(self, condition: Expr | None) -> None:
        if condition is not None:
            self.conditions.extend(conjuncts(condition))


def _is_run(tree: Operator) -> bool:
    match tree:
        case Join():
            return tree.kind is JoinKind.INNER
        case Filter():
            return _is_run(tree.input)
        case Project():
            return _passes(tree) and _is_run(tree.input)
        case _:
            return False


def _passes(tree: Project) -> bool:
    """Whether columns are only left out or put into another order."""
    return all(output.is_plain and output.value.name == output.name for output in tree.outputs)


def _next(made: Operator, left: Sequence[Operator], conditions: Sequence[Expr]) -> int:
    """The input to join next: one that an equality ties to what is there, else one that any condition does."""
    known = set(made.columns)
    for wanted in (exp.EQ | exp.NullSafeEQ, exp.Expr):
        for place, one in enumerate(left):
            own = set(one.columns)
            for condition in conditions:
                used = column_names(condition)
                if isinstance(condition, wanted) and used & own and used & known and used <= known | own:
                    return place
    return 0
