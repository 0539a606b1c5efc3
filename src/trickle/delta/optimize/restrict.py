"""A small left side restricts the big right side before they are joined.

Spark can build a hash table of the right side only in a left, semi or anti join; with the change on the left it would
sort and shuffle the whole table on the right. So for small A

    A left B on c      becomes    A left (B semi A on c) on c

and the same with semi and anti: the inner semi join builds its table of A, reads B once, and what is left of B is
small. Safe because a row of B for which c holds with no row of A makes no difference to either side. A is used twice;
it becomes a step of its own when it is not at hand already (``optimize/share.py``).

In semi and anti joins that ask for what B was, or for that and for what it is, the first answer is taken from the
second where that can be (``optimize/old_matches.py``). A is repeated there too, so one walk does both.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from trickle.delta.optimize.join_order import is_small
from trickle.delta.optimize.old_matches import Question, by_number, question
from trickle.operators import Face, Join, JoinKind, Operator, walk


def restrict_right(tree: Operator) -> Operator:
    """The tree with the big sides of its left, semi and anti joins restricted."""
    asked = (question(node, Face.OLD) for node in walk(tree) if isinstance(node, Join))
    return _restricted(tree, {one for one in asked if one is not None})


def _restricted(tree: Operator, of_old: AbstractSet[Question]) -> Operator:
    """The tree restricted, given what is asked of old states: questions are those of joins as they were before."""
    node = tree.with_inputs([_restricted(child, of_old) for child in tree.inputs]) if tree.inputs else tree
    if not isinstance(tree, Join) or not isinstance(node, Join):
        return node
    if node.kind is JoinKind.INNER or node.condition is None or not is_small(node.left) or is_small(node.right):
        return node
    if question(tree, Face.OLD) is not None:
        return by_number(node, Face.OLD)
    if question(tree, Face.NEW) in of_old:
        return by_number(node, Face.NEW)
    answers = Join(JoinKind.SEMI, node.right, node.left, node.condition, small="right")
    return replace(node, right=answers, small="right")
