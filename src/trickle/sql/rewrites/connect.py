"""Avoids cross products: ``FROM part, supplier, partsupp`` joins the first two only through the third.

Inner joins commute and associate, and a conjunct may be checked as soon as all its columns are there. A group of inner
joins in which one has no condition is joined anew: from the first relation on, always the next one that a conjunct
connects with those before it; where none does, the next one. Groups without cross products stay as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trickle.operators import Expr, Join, JoinKind, Operator, Output, Project, column_names
from trickle.sql.rewrites.conditions import all_of, conjuncts, is_volatile


def connect(tree: Operator) -> Operator:
    """The same relation with relations joined in an order that has conditions."""
    if not _is_inner(tree):
        return tree.with_inputs([connect(child) for child in tree.inputs])
    relations, parts, crossed = _group(tree)
    relations = [connect(relation) for relation in relations]
    if not crossed or len(relations) < 3 or any(map(is_volatile, parts)):
        return _as_written(tree, iter(relations))
    return Project(_joined(relations, parts), Output.keep(tree.columns))


def _is_inner(node: Operator) -> bool:
    return isinstance(node, Join) and node.kind is JoinKind.INNER and node.small is None


def _group(node: Operator) -> tuple[list[Operator], list[Expr], bool]:
    """The relations of a group of inner joins from left to right, its conjuncts, and whether a join has none."""
    if not isinstance(node, Join) or not _is_inner(node):
        return [node], [], False
    left, left_parts, left_crossed = _group(node.left)
    right, right_parts, right_crossed = _group(node.right)
    own = conjuncts(node.condition)
    return [*left, *right], [*left_parts, *right_parts, *own], left_crossed or right_crossed or not own


def _as_written(node: Operator, relations: Iterator[Operator]) -> Operator:
    if not isinstance(node, Join) or not _is_inner(node):
        return next(relations)
    left = _as_written(node.left, relations)
    return Join(node.kind, left, _as_written(node.right, relations), node.condition)


def _joined(relations: Sequence[Operator], parts: Sequence[Expr]) -> Operator:
    tree, *waiting = relations
    open_parts = list(parts)
    while waiting:
        following = next((each for each in waiting if _connects(tree, each, open_parts)), waiting[0])
        waiting = [each for each in waiting if each is not following]
        here = {*tree.columns, *following.columns}
        ready = [part for part in open_parts if column_names(part) <= here]
        open_parts = [part for part in open_parts if not column_names(part) <= here]
        tree = Join(JoinKind.INNER, tree, following, all_of(ready))
    return tree


def _connects(left: Operator, right: Operator, parts: Sequence[Expr]) -> bool:
    before, after = set(left.columns), set(right.columns)
    used = [column_names(part) for part in parts]
    return any(names <= before | after and names & before and names & after for names in used)
