"""Left join, with any condition.

    X = A_old semi dB                       the rows of the left whose matches changed
    d(A left B) =  dA left B_new
                +  A_old * dB               matches that come and go
                +  pad(X anti B_new)        rows that no longer have a match (+1)
                -  pad(X anti B_old)        rows that had none before (-1)

where ``pad`` gives NULL for the columns of B. Class: linear in the left, non-linear in the right. Keeps no state; never
falls back. Rows of A_old outside X match the same rows of B before and after, so they give no change; for those in X
the inner part is bilinear and the padded part is what the anti join gives.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import arranged, padded, union, weighted
from trickle.operators import Face, Join, JoinKind, Operator, at_face


def left_join(tree: Join) -> Operator:
    """The change of a left join."""
    old, change = at_face(tree.left, Face.OLD), differentiate(tree.right)
    affected = replace(tree, kind=JoinKind.SEMI, left=old, right=change, small="right")
    parts = [
        replace(tree, left=differentiate(tree.left), right=at_face(tree.right, Face.NEW), small="left"),
        replace(tree, kind=JoinKind.INNER, left=old, right=change, small="right"),
        *(
            padded(weighted(_unmatched(tree, affected, face), weight), tree.right.columns, tree.columns)
            for face, weight in ((Face.NEW, 1), (Face.OLD, -1))
        ),
    ]
    return union(arranged(part, tree.columns) for part in parts)


def _unmatched(tree: Join, rows: Operator, face: Face) -> Operator:
    return replace(tree, kind=JoinKind.ANTI, left=rows, right=at_face(tree.right, face), small="left")
