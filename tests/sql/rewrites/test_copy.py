from __future__ import annotations

from sqlglot import exp

from tests.sql.rewrites.relations import tree_of
from trickle.operators import (
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    UnionAll,
    col,
    equal,
    free_columns,
    walk,
)
from trickle.sql.rewrites import Names, fresh_copy

QUERIES = [
    "SELECT a, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM t",
    "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 1",
    "SELECT a FROM t UNION ALL SELECT b FROM u",
    "SELECT a, b FROM t ORDER BY a, b LIMIT 2",
    "SELECT t.a, e.c FROM t LATERAL VIEW explode(array(b)) e AS c",
    "SELECT id FROM t WHERE a IN (SELECT a FROM u WHERE u.b = t.b) OR EXISTS (SELECT 1 FROM v)",
    "WITH RECURSIVE r(n) AS (SELECT a FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
]


def names_in(tree: Operator) -> set[str]:
    return {name for node in walk(tree) for name in node.columns}


def test_a_copy_shares_no_name_and_can_be_joined() -> None:
    for text in QUERIES:
        tree = tree_of(text)
        copy, names = fresh_copy(tree, Names.of(tree))
        assert not names_in(copy) & names_in(tree)
        assert copy.columns == tuple(names[name] for name in tree.columns)
        assert not free_columns(copy)
        assert Join(JoinKind.INNER, tree, copy).columns == (*tree.columns, *copy.columns)


def test_what_comes_from_outside_keeps_its_name() -> None:
    tree = Filter(Scan("t", (("a", "a"),)), equal("a", "outer"))
    copy, _ = fresh_copy(tree, Names.of(tree))
    assert free_columns(copy) == {"outer"}


def test_a_reference_follows_its_recursion_when_that_is_copied_too() -> None:
    step = Project(RecursiveRef("r", ("m",)), (Output("k", exp.Add(this=col("m"), expression=exp.Literal.number(1))),))
    tree = Recursion("r", ("n",), Scan("t", (("a", "a"),)), step, distinct=True)
    whole, _ = fresh_copy(tree, Names.of(tree))
    assert isinstance(whole, Recursion)
    assert whole.name == "r_1"
    assert [node.name for node in walk(whole) if isinstance(node, RecursiveRef)] == ["r_1"]
    inside, _ = fresh_copy(step, Names.of(tree))
    assert [node.name for node in walk(inside) if isinstance(node, RecursiveRef)] == ["r"]


def test_parts_of_a_union_still_share_their_names() -> None:
    part = Scan("t", (("a", "a"),))
    copy, names = fresh_copy(UnionAll((part, part)), Names(["a"]))
    assert copy.columns == (names["a"],) == ("a_1",)
