"""What matched a few rows before is what matches them now, without the change.

The rules of semi, anti and left joins ask a relation B twice which of its rows match a few rows X: as B is, and as it
was. Where B only picks from one table, the second answer follows from the first, and the table is read once. How many
rows match is all there is to know, by the columns of B that the condition c uses:

    N                    =          B_new semi X on c, grouped by these columns, with their number
    X semi B_new on c    becomes    X semi N on c
    X semi B_old on c    becomes    X semi (groups of N and -dB whose numbers add up to more than 0) on c

and the same with anti. Both use N, which is made once (``optimize/share.py``): of customers with fifteen orders each,
one row for a customer is kept in its place.

Safe because a filter and a projection of a table change as the table does, because a row of B for which c holds with no
row of X does not matter to X, and because copies of what c uses do not matter either. Not where B depends on the time:
then it changes without its table. Nor where c computes with a column of B: -0.0 and 0.0 are one group, and equal in
every comparison, but not as texts.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.delta.building import call
from trickle.delta.differentiate import differentiate
from trickle.delta.plan import OWN
from trickle.delta.weighted import literal
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
)
from trickle.operators.clock import NOW, NOW_OLD

_COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is)

Question = tuple[Operator, Operator, Expr]
"""Few rows, the relation that is asked for rows that match them, as it is, and the condition."""


def question(join: Join, face: Face) -> Question | None:
    """What a semi or anti join asks one state of a table; None where the other's answer does not follow from it."""
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or join.condition is None or not _is_picked(join.right, face):
        return None
    own = set(join.right.columns)
    if join.used & {NOW, NOW_OLD} or not join.used & own or not _is_compared(join.condition, own):
        return None
    return join.left, at_face(join.right, Face.NEW), join.condition


def by_number(join: Join, face: Face) -> Join:
    """A join that asks such a question, with the groups that match in the place of the rows."""
    relation = at_face(join.right, Face.NEW)
    keys = tuple(name for name in relation.columns if name in join.used)
    matches = Join(JoinKind.SEMI, relation, join.left, join.condition, small="right")
    there: Operator = Aggregate(matches, keys, (Output(WEIGHT, call("count", literal(1))),))
    if face is Face.OLD:
        undone = Project(differentiate(relation), (*Output.keep(keys), Output(WEIGHT, exp.Neg(this=col(WEIGHT)))))
        net = Aggregate(UnionAll((there, undone)), keys, (Output(WEIGHT, call("sum", col(WEIGHT))),))
        there = Filter(net, exp.GT(this=col(WEIGHT), expression=exp.Literal.number("0")))
    return replace(join, right=Project(there, Output.keep(keys)), small="right")


def _is_compared(condition: Expr, columns: AbstractSet[str]) -> bool:
    """Whether columns stand in comparisons only, as they are."""
    used = [column for column in condition.find_all(exp.Column) if column.name in columns]
    return all(isinstance(column.parent, _COMPARISONS) for column in used)


def _is_picked(tree: Operator, face: Face) -> bool:
    """Whether a relation is this state of a table, or is picked from it without regard to the time."""
    match tree:
        case Scan():
            # What becomes of the stored table itself is what is being computed.
            return tree.face is face and not tree.located and tree.table != OWN
        case Filter() | Project():
            return not tree.used & {NOW, NOW_OLD} and _is_picked(tree.input, face)
        case _:
            return False
