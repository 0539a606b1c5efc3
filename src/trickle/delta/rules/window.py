"""Window functions.

    K = the partitions in dQ
    d(window_p(Q)) =  window_p(Q_new semi K)  -  window_p(Q_old semi K)

Class: non-linear. Reads both states of the input, restricted to the partitions that changed: a function of one
partition does not look into another, whatever its frame. Keeps no state. Without PARTITION BY there is one partition,
and both states are read whole (``is_unrestricted``).
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import keys_of, restricted, union, weighted
from trickle.operators import Face, Operator, Window, at_face


@differentiate.register
def _(tree: Window) -> Operator:
    wanted = keys_of(differentiate(tree.input), tree.partition) if tree.partition else None
    parts = []
    for face, weight in ((Face.NEW, 1), (Face.OLD, -1)):
        rows = at_face(tree.input, face)
        kept = rows if wanted is None else restricted(rows, tree.partition, wanted)
        parts.append(weighted(replace(tree, input=kept), weight))
    return union(parts)
