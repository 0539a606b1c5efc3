"""Types that are told without asking Spark, and what is done where they are not."""

from __future__ import annotations

import pytest
from sqlglot import exp

from trickle.algebra.names import TableName
from trickle.operators import show
from trickle.sql.build import build_tree
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.kinds import kind_of, kinds_of

SCHEMAS = {
    TableName.of(["q"]): {
        "i": "int",
        "l": "bigint",
        "d": "date",
        "ts": "timestamp",
        "x": "double",
        "c": "decimal(5,2)",
    },
    TableName.of(["g"]): {"s": "string", "n": "int"},
}


@pytest.mark.parametrize(
    "expression, kind",
    [
        ("i", "int"),
        ("coalesce(i, l)", "bigint"),
        ("coalesce(i, 1.5)", "decimal"),
        ("coalesce(i, x)", None),
        ("coalesce(d, ts)", None),
        ("coalesce(NULL, d)", "date"),
        ("-i", "int"),
        ("abs(i)", "int"),
        ("CASE WHEN i > 0 THEN i ELSE l END", "bigint"),
        ("CASE WHEN i > 0 THEN i END", "int"),
        ("CASE WHEN i > 0 THEN i ELSE 'a' END", None),
        ("i / l", "double"),
        ("i / c", "decimal"),
        ("i + x", "double"),
        ("upper(cast(i AS STRING))", "string"),
        ("some_function(i)", None),
    ],
)
def test_the_type_of_an_expression_is_told_or_not(expression: str, kind: str | None) -> None:
    tree = build_tree(f"SELECT {expression} AS v FROM q", SCHEMAS)
    assert kinds_of(tree, SCHEMAS).get("v" if "v" in tree.columns else tree.columns[0]) == kind


def test_a_text_with_a_sign_is_no_text() -> None:
    assert kind_of(exp.Neg(this=exp.column("s")), {"s": "string"}) is None


@pytest.mark.parametrize(
    "parts, kind",
    [
        ("SELECT i AS k FROM q UNION ALL SELECT l FROM q", "bigint"),
        ("SELECT i AS k FROM q UNION ALL SELECT NULL", "int"),
        ("SELECT i AS k FROM q UNION ALL SELECT s FROM g", None),
    ],
)
def test_a_union_has_the_type_of_its_parts(parts: str, kind: str | None) -> None:
    tree = build_tree(parts, SCHEMAS)
    assert kinds_of(tree, SCHEMAS).get(tree.columns[0]) == kind


@pytest.mark.parametrize("outer", ["some_function(q.i)", "CASE WHEN q.i > 0 THEN q.x ELSE 'a' END"])
def test_a_key_of_unknown_type_is_computed_for_the_values_that_ask(outer: str) -> None:
    tree = build_tree(f"SELECT q.i, (SELECT count(*) FROM g WHERE g.s = {outer}) AS m FROM q", SCHEMAS)
    assert "aggregate by s:" not in show(rewrite(tree, SCHEMAS))
    assert "aggregate by s:" in show(rewrite(tree))
