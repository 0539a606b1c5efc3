"""Recursive common table expressions: the general rule.

    d(fix(Q)) = fix(Q_new) - fix(Q_old)

Class: non-linear; both states are computed whole (``is_unrestricted``). A recursion that stands alone is kept in a
table of its own and has the rules of ``delta/fixpoint.py``; this one is for a recursion inside the step of another, and
for the plain form of a plan.

    d(previous) = nothing

What the step before made is held fixed: the change of a step is that of its sources alone. Who changes both adds the
step over the rows that came, as the step is linear in them.
"""

from __future__ import annotations

from trickle.algebra.weights import WEIGHT
from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union, weighted
from trickle.operators import Face, Operator, Recursion, RecursiveRef, Values, at_face


@differentiate.register
def _(tree: Recursion) -> Operator:
    return union(weighted(at_face(tree, face), weight) for face, weight in ((Face.NEW, 1), (Face.OLD, -1)))


@differentiate.register
def _(tree: RecursiveRef) -> Operator:
    return Values((*tree.columns, WEIGHT), ())
