"""Semi join and anti join, with any condition: EXISTS, IN, NOT EXISTS, NOT IN.

    X = A_old semi dB                       the rows of the left whose matches changed
    d(A semi B) =  dA semi B_new  +  X semi B_new  -  X semi B_old

and the same with anti for semi. Class: linear in the left, non-linear in the right. Keeps no state; never falls back.
Rows of A_old outside X match the same rows of B before and after, so nothing changes for them. What a match is does not
matter: NOT IN has a condition that is true for NULL as well.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import arranged, union, weighted
from trickle.operators import Face, Join, JoinKind, Operator, at_face


def semi_join(tree: Join) -> Operator:
    """The change of a semi join or an anti join."""
    change = differentiate(tree.right)
    affected = replace(tree, kind=JoinKind.SEMI, left=at_face(tree.left, Face.OLD), right=change, small="right")
    new, old = at_face(tree.right, Face.NEW), at_face(tree.right, Face.OLD)
    parts = [
        replace(tree, left=differentiate(tree.left), right=new, small="left"),
        weighted(replace(tree, left=affected, right=new, small="left"), 1),
        weighted(replace(tree, left=affected, right=old, small="left"), -1),
    ]
    return union(arranged(part, tree.columns) for part in parts)
