"""What matched a few rows before is what matches them now, without the change.

The rules of semi, anti and left joins ask a relation B twice which of its rows match a few rows X: as B is, and as it
was. Where B only picks from one table, the second answer follows from the first, and the table is read once:

    B_old semi X                          =          B_new semi X  -  dB semi X           as multisets

    X semi B_old on c, X anti B_old on c  become     X semi R on c, X anti R on c
    with R                                           the rows of B_new semi X and -dB whose weights do not add up to 0

Safe because a filter and a projection of a table change as the table does, and because a row of B for which c holds
with no row of X does not matter to X. Copies do not matter either, so R has every row once. Not where B depends on the
time: then it changes without its table.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.delta.building import call
from trickle.delta.differentiate import differentiate
from trickle.delta.plan import OWN
from trickle.delta.weighted import weighted
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
    UnionAll,
    at_face,
    col,
    column_names,
)
from trickle.operators.clock import NOW, NOW_OLD


def from_new(join: Join) -> Join:
    """A semi or anti join of few rows with the old state of a table, asked of its new state; others as they are."""
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or join.condition is None or not _is_picked(join.right):
        return join
    if column_names(join.condition) & {NOW, NOW_OLD}:
        return join
    return replace(join, right=_old(join.right, join.left, join.condition), small="right")


def _is_picked(tree: Operator) -> bool:
    """Whether a relation is the old state of a table, or is picked from it without regard to the time."""
    match tree:
        case Scan():
            # What becomes of the stored table itself is what is being computed.
            return tree.face is Face.OLD and not tree.located and tree.table != OWN
        case Filter() | Project():
            return not tree.used & {NOW, NOW_OLD} and _is_picked(tree.input)
        case _:
            return False


def _old(right: Operator, left: Operator, condition: Expr) -> Operator:
    new = at_face(right, Face.NEW)
    matches = Join(JoinKind.SEMI, new, left, condition, small="right")
    change = differentiate(new)
    undone = Project(change, (*Output.keep(new.columns), Output(WEIGHT, exp.Neg(this=col(WEIGHT)))))
    net = Aggregate(UnionAll((weighted(matches, 1), undone)), new.columns, (Output(WEIGHT, call("sum", col(WEIGHT))),))
    there = Filter(net, exp.GT(this=col(WEIGHT), expression=exp.Literal.number("0")))
    return Project(there, Output.keep(new.columns))
