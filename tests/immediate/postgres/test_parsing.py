"""PostgreSQL's text, as the builder takes it."""

from __future__ import annotations

import pytest

from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.parsing import Function, Relation, functions, parsed, relations, respelled, spelled
from trickle.sql.lower.postgres import hidden_function


def test_tables_get_labels_and_keep_their_names() -> None:
    tree = parsed('SELECT orders.id FROM public.orders, "My S"."T" x')
    labels = {Relation("public", "orders"): "t1", Relation("My S", "T"): "t2"}
    assert relations(tree) == set(labels)
    assert spelled(respelled(tree, labels, frozenset())) == 'SELECT orders.id FROM t1 AS "orders", t2 AS x'


def test_unqualified_names_are_common_table_expressions_or_postgresqls() -> None:
    tree = parsed("WITH c AS (SELECT 1 AS a) SELECT c.a FROM c, pg_class")
    assert relations(tree) == {Relation("pg_catalog", "pg_class")}


def test_functions_that_the_builder_would_mistake_are_hidden() -> None:
    tree = parsed('SELECT sum(a), array_agg(b), first(c), length(d), "X"."F"(explode(e)) FROM s.t')
    aggregates = frozenset((Function(None, "sum"), Function(None, "array_agg")))
    assert Function("X", "F") in functions(tree)
    text = spelled(respelled(tree, {Relation("s", "t"): "t1"}, aggregates))
    hidden = [hidden_function(name) for name in ("array_agg", "first", '"X"."F"', "explode")]
    assert text.startswith(f"SELECT sum(a), {hidden[0]}(b), {hidden[1]}(c), length(d), {hidden[2]}({hidden[3]}(e))")


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("a = ANY (ARRAY[1, 2])", "a IN (1, 2)"),
        ("a <> ALL (ARRAY[1, 2])", "a <> ALL(ARRAY[1, 2])"),
        ("a = ANY (b)", f"a = {hidden_function('ANY')}(b)"),
        ("a > ANY (ARRAY[1, 2])", f"a > {hidden_function('ANY')}(ARRAY[1, 2])"),
        ("a = ANY (SELECT 1)", "a = ANY (SELECT 1)"),
    ],
)
def test_quantifiers_over_arrays(condition: str, expected: str) -> None:
    tree = respelled(parsed(f"SELECT 1 FROM s.t WHERE {condition}"), {Relation("s", "t"): "t1"}, frozenset())
    assert spelled(tree).partition("WHERE ")[2] == expected


def test_text_that_is_no_query() -> None:
    with pytest.raises(UnsupportedQuery):
        parsed("SELECT FROM WHERE (")
