from __future__ import annotations

import pytest

from tests.sql.lower.given import duck, e, named, out, rows, scan, spark
from trickle.errors import UnsupportedQuery
from trickle.operators import Filter, Generate, Project
from trickle.sql.lower import lower

T = scan("t", "k", "xs")
TABLES = {"t": (["k", "xs"], [(1, ["a", None]), (2, []), (3, None), (4, ["b"])])}


@pytest.mark.parametrize(
    "generator, names, outer, expected",
    [
        ("explode(xs)", ("x",), False, [(1, "a"), (1, None), (4, "b")]),
        ("explode(xs)", ("x",), True, [(1, "a"), (1, None), (2, None), (3, None), (4, "b")]),
        ("explode_outer(xs)", ("x",), False, [(1, "a"), (1, None), (2, None), (3, None), (4, "b")]),
        ("posexplode(xs)", ("p", "x"), False, [(1, 0, "a"), (1, 1, None), (4, 0, "b")]),
        (
            "posexplode(xs)",
            ("p", "x"),
            True,
            [(1, 0, "a"), (1, 1, None), (2, None, None), (3, None, None), (4, 0, "b")],
        ),
        ("explode(sequence(1, k))", ("n",), False, [(k, n) for k in range(1, 5) for n in range(1, k + 1)]),
        ("explode(sequence(k, 3))", ("n",), False, [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3), (4, 3), (4, 4)]),
        ("explode(array_repeat(k, k - 2))", ("n",), False, [(3, 3), (4, 4), (4, 4)]),
        (
            "explode(map('u', k, 'v', 0))",
            ("m", "n"),
            False,
            [(k, *row) for k in range(1, 5) for row in (("u", k), ("v", 0))],
        ),
        ("inline(array(named_struct('u', k, 'v', 0)))", ("u", "v"), False, [(k, k, 0) for k in range(1, 5)]),
        (
            "stack(2, k, 'u', k + 1)",
            ("n", "s"),
            False,
            [(k, *row) for k in range(1, 5) for row in ((k, "u"), (k + 1, None))],
        ),
    ],
)
def test_what_generators_make_of_rows(generator, names, outer, expected):
    tree = Generate(T, e(generator), names, outer)
    kept = Project(tree, out(**{name: name for name in ("k", *names)}))
    assert rows(duck(**TABLES).run(kept)) == expected


def test_spark_text():
    tree = Filter(Generate(T, e("explode(xs)"), ("x",), outer=True), e("x = 'a'"))
    assert spark(tree) == (
        "WITH `t_new` AS (SELECT `k`, `xs` FROM `v_t_new`) SELECT `k`, `xs`, `x` FROM `t_new` "
        "LATERAL VIEW OUTER explode(`xs`) made_1 AS `x` WHERE `x` = 'a'"
    )


def test_postgres_unnests():
    tree = Generate(T, e("explode(xs)"), ("x",), outer=True)
    assert lower(tree, named, "postgres").endswith('LEFT JOIN LATERAL (SELECT UNNEST("xs") AS "x") AS "made_1" ON TRUE')
    with pytest.raises(UnsupportedQuery, match="posexplode cannot be written for postgres"):
        lower(Generate(T, e("posexplode(xs)"), ("p", "x")), named, "postgres")


def test_a_generator_that_only_spark_has():
    with pytest.raises(UnsupportedQuery, match="json_tuple cannot be written for duckdb"):
        lower(Generate(T, e("json_tuple(k, 'a')"), ("x",)), named, "duckdb")
