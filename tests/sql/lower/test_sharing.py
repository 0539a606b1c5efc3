from __future__ import annotations

from tests.sql.lower.given import e, out, scan
from trickle.operators import Filter, Operator, Project, UnionAll
from trickle.sql.lower.sharing import Shared


def test_equal_subtrees_become_one_object():
    tree = UnionAll((Filter(scan("t", "a"), e("a > 1")), Filter(scan("t", "a"), e("a > 1"))))
    shared = Shared(tree)
    one, other = shared.root.inputs
    assert one is other
    assert shared.is_shared(one)
    assert not shared.is_shared(one.inputs[0])
    assert shared.root == tree


def test_what_differs_stays_apart():
    tree = UnionAll((Filter(scan("t", "a"), e("a > 1")), Filter(scan("t", "a"), e("a > 2"))))
    shared = Shared(tree)
    one, other = shared.root.inputs
    assert one is not other
    assert shared.is_shared(one.inputs[0])


def test_inputs_come_before_what_reads_them():
    tree = Project(Filter(scan("t", "a"), e("a > 1")), out(b="a"))
    assert Shared(tree).nodes == [tree.input.inputs[0], tree.input, tree]


def test_a_tree_of_a_million_equal_parts_is_visited_quickly():
    tree: Operator = scan("t", "a")
    for _ in range(20):
        tree = UnionAll((tree, tree))
    assert len(Shared(tree).nodes) == 21
