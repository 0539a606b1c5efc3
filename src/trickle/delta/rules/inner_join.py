"""Inner join, with any condition or none.

    d(A * B) = dA * B_old  +  A_new * dB

Class: bilinear. Reads each side's other face where the first side changed. Keeps no state; never falls back.

Why it is right: A_new * B_new - A_old * B_old
              = (A_new - A_old) * B_old + A_new * (B_new - B_old).
The two states come from the tables' histories, so nothing is corrected afterwards, at any depth. For a chain of n
inputs the rule unfolds to n terms, each with one change: inputs before it are new, inputs after it old.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.differentiate import differentiate
from trickle.delta.weighted import arranged, union
from trickle.operators import Face, Join, Operator, at_face


def inner_join(tree: Join) -> Operator:
    """The change of an inner join."""
    from_left = replace(tree, left=differentiate(tree.left), right=at_face(tree.right, Face.OLD), small="left")
    from_right = replace(tree, left=at_face(tree.left, Face.NEW), right=differentiate(tree.right), small="right")
    return union((arranged(from_left, tree.columns), arranged(from_right, tree.columns)))
