"""Top-k: ORDER BY ... LIMIT ... OFFSET.

    d(top_k(Q)) = top_k(Q_new) - top_k(Q_old)

Class: non-linear, and no key restricts it: both states are read whole (``is_unrestricted``). The quick rule for a top-k
whose result is kept in a table is in ``delta/first_rows.py``.
"""

from __future__ import annotations

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import union, weighted
from trickle.operators import Face, Operator, TopK, at_face


@differentiate.register
def _(tree: TopK) -> Operator:
    return union(weighted(at_face(tree, face), weight) for face, weight in ((Face.NEW, 1), (Face.OLD, -1)))
