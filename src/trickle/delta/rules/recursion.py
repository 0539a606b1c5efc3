"""Recursive common table expressions: the general rule.

    d(fix(Q)) = fix(Q_new) - fix(Q_old)

Class: non-linear; both states are computed whole (``is_unrestricted``). The quick rule, semi-naive for insertions and
delete-and-rederive for deletions, is in ``delta/fixpoint.py``.
"""

from __future__ import annotations

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union, weighted
from trickle.operators import Face, Operator, Recursion, at_face


@differentiate.register
def _(tree: Recursion) -> Operator:
    return union(weighted(at_face(tree, face), weight) for face, weight in ((Face.NEW, 1), (Face.OLD, -1)))
