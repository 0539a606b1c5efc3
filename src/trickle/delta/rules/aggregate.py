"""Aggregate and distinct: the general rule, which needs no state.

    K = the keys in dQ
    d(aggregate_k(Q)) =  aggregate_k(Q_new semi K)  -  aggregate_k(Q_old semi K)

Class: non-linear. Reads both states of the input, restricted to the groups that changed. Right for every aggregate
function, as a group whose key is not in K has the same rows before and after. Without keys there is one group, and
nothing to restrict to: both states are read whole (``is_unrestricted``). The quick rule for aggregates whose result is
kept in a table is in ``delta/groups.py``.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import keys_of, restricted, union, weighted
from trickle.operators import Aggregate, Face, Operator, at_face


@differentiate.register
def _(tree: Aggregate) -> Operator:
    wanted = keys_of(differentiate(tree.input), tree.keys) if tree.keys else None
    return union(
        weighted(replace(tree, input=_rows(tree, wanted, face)), weight)
        for face, weight in ((Face.NEW, 1), (Face.OLD, -1))
    )


def _rows(tree: Aggregate, wanted: Operator | None, face: Face) -> Operator:
    rows = at_face(tree.input, face)
    return rows if wanted is None else restricted(rows, tree.keys, wanted)
