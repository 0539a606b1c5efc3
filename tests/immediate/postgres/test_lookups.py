"""Plans are written so that indexes can be used, and mean the same."""

from __future__ import annotations

from sqlglot import exp

from trickle.delta.plan import Plan
from trickle.immediate.postgres.lookups import KEPT, MOVED, Certain, Derived, matching, with_lookups
from trickle.operators import (
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    UnionAll,
    col,
    null_safe,
    walk,
)

BIG = Scan("t", (("k", "k"), ("v", "v")))
FEW = Step("few", (("a", "a"),))
NULLS = {"t": frozenset[str]()}
NO_NULLS = {"t": frozenset(("k",))}


def result_of(tree: Operator, tables: dict[str, frozenset[str]], derived: Derived = frozenset()) -> Operator:
    return with_lookups(Plan((), tree), tables, derived).result


def conditions(tree: Operator) -> list[str]:
    found = [node.condition for node in walk(tree) if isinstance(node, Join)]
    return [one.sql("postgres", normalize_functions=False) for one in found if one is not None]


def test_columns_without_null_are_compared_by_equality() -> None:
    assert matching([("a", "b")], frozenset("a")).sql("postgres") == '"a" = "b"'


def test_columns_that_may_be_null_are_found_by_a_hash_and_told_by_their_values() -> None:
    assert matching([("a", "b")], frozenset()).sql("postgres", normalize_functions=False) == (
        'hash_record_extended(ROW("a"), 0) = hash_record_extended(ROW("b"), 0) AND "a" IS NOT DISTINCT FROM "b"'
    )


def test_a_few_keys_come_first() -> None:
    picked = result_of(Join(JoinKind.SEMI, BIG, FEW, null_safe([("k", "a")])), NO_NULLS)
    assert isinstance(picked, Project)
    assert isinstance(picked.input, Join)
    assert picked.input.kind is JoinKind.INNER
    assert conditions(picked) == ['"k" = "a"']


def test_keys_that_may_be_null_are_looked_up_apart() -> None:
    picked = result_of(Join(JoinKind.SEMI, BIG, FEW, null_safe([("k", "a")])), NULLS)
    assert isinstance(picked, UnionAll)
    assert [one.startswith("hash") for one in conditions(picked)] == [False, True]


def test_other_conditions_are_asked_of_what_is_left() -> None:
    more = exp.and_(null_safe([("k", "a")]), exp.GT(this=col("v"), expression=col("a")))
    picked = result_of(Join(JoinKind.SEMI, BIG, FEW, more), NO_NULLS)
    assert isinstance(picked, Join)
    assert picked.kind is JoinKind.SEMI
    assert conditions(picked.left) == ['"k" = "a"']


def test_a_big_side_that_is_asked_for_stays_a_semi_join() -> None:
    tree = Join(JoinKind.SEMI, FEW, BIG, null_safe([("a", "k")]))
    assert isinstance(result_of(tree, NO_NULLS), Join)


def test_a_derived_state_is_joined_in_two_parts() -> None:
    old = Filter(Scan("t", BIG.fields, Face.OLD), exp.GT(this=col("v"), expression=exp.Literal.number(1)))
    joined = result_of(
        Join(JoinKind.INNER, FEW, old, exp.EQ(this=col("a"), expression=col("k"))), NULLS, frozenset({("t", Face.OLD)})
    )
    assert isinstance(joined, UnionAll)
    assert [node.table for node in walk(joined) if isinstance(node, Scan)] == [f"t{KEPT}", f"t{MOVED}"]


def test_what_is_never_null() -> None:
    certain = Certain({"t": frozenset(("k",))}, {"few": frozenset(("a",))})
    assert certain.columns(BIG) == {"k"}
    assert certain.columns(Join(JoinKind.LEFT, FEW, BIG, None)) == {"a"}
    assert certain.columns(Join(JoinKind.INNER, FEW, BIG, exp.EQ(this=col("a"), expression=col("v")))) == {
        "a",
        "k",
        "v",
    }
    assert certain.columns(Project(BIG, (Output("x", col("k")), Output("y", col("v"))))) == {"x"}
    assert certain.columns(UnionAll((BIG, BIG))) == {"k"}
