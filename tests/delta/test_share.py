"""Common parts of a plan become steps, however often they are repeated."""

from __future__ import annotations

from trickle.delta.optimize.restrict import restrict_right
from trickle.delta.optimize.share import share
from trickle.delta.plan import Plan, PlanStep
from trickle.operators import Face, Join, JoinKind, Operator, Scan, Step, UnionAll, equal, walk


def _scan(table: str, column: str, face: Face) -> Scan:
    return Scan(table, (("k", column),), face)


def _joined(left: Operator, right: Operator, kind: JoinKind = JoinKind.LEFT) -> Join:
    return Join(kind, left, right, equal(left.columns[0], right.columns[0]), small="left")


def _all_operators(plan: Plan) -> list[Operator]:
    return [node for tree in (*(step.tree for step in plan.steps), plan.result) for node in walk(tree)]


def test_a_long_chain_of_outer_joins_stays_as_long_as_it_is() -> None:
    """Each restriction repeats what is left of it: written out, the thirtieth join would have a billion operators."""
    tree: Operator = _scan("t", "c0", Face.CHANGE)
    for number in range(1, 31):
        tree = _joined(tree, _scan(f"t{number}", f"c{number}", Face.NEW))

    plan = share(Plan((), restrict_right(tree)))

    assert len(_all_operators(plan)) < 300
    assert len(plan.steps) == 29  # the change itself is at hand
    assert plan.result.columns == tree.columns


def test_steps_come_before_their_first_use() -> None:
    part = _joined(_scan("t", "a", Face.CHANGE), _scan("u", "b", Face.OLD), JoinKind.INNER)
    first = _joined(part, _scan("v", "c", Face.OLD))
    second = _joined(part, Step("changed", (("c", "d"),)))
    plan = share(Plan((PlanStep("changed", first),), second))

    assert [step.name for step in plan.steps] == ["shared_1", "changed"]
    assert plan.steps[0].tree == part
    for number, step in enumerate(plan.steps):
        known = {one.name for one in plan.steps[:number]}
        assert {node.name for node in walk(step.tree) if isinstance(node, Step)} <= known


def test_what_is_big_or_at_hand_is_not_held() -> None:
    big = _joined(_scan("t", "a", Face.NEW), _scan("u", "b", Face.NEW), JoinKind.INNER)
    at_hand = _joined(_scan("t", "c", Face.CHANGE), Step("changed", (("c", "d"),)), JoinKind.INNER)
    result = _joined(UnionAll((big, big)), UnionAll((at_hand, at_hand)), JoinKind.INNER)

    assert share(Plan((), result)) == Plan((), result)


def test_a_part_inside_of_big_repeated_parts_is_held_once() -> None:
    small = _joined(_scan("t", "a", Face.CHANGE), _scan("u", "b", Face.OLD), JoinKind.INNER)
    big = _joined(_scan("v", "c", Face.NEW), small, JoinKind.LEFT)
    plan = share(Plan((), UnionAll((big, big))))

    assert [step.tree for step in plan.steps] == [small]
    assert sum(isinstance(node, Step) for node in walk(plan.result)) == 2
