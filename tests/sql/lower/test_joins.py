from __future__ import annotations

import pytest

from tests.sql.lower.given import duck, e, named, out, rows, scan, spark
from trickle.operators import Filter, Join, JoinKind, Project
from trickle.sql.lower import lower

LEFT = scan("l", "a", "b")
RIGHT = scan("r", "c", "d")
TABLES = {
    "l": (["a", "b"], [(1, 10), (2, 20), (2, 21), (None, 30)]),
    "r": (["c", "d"], [(1, 5), (2, 6), (2, 7), (None, 8), (9, 9)]),
}


@pytest.mark.parametrize(
    "kind, condition, expected",
    [
        (JoinKind.INNER, "a = c", [(1, 10, 1, 5), (2, 20, 2, 6), (2, 20, 2, 7), (2, 21, 2, 6), (2, 21, 2, 7)]),
        (JoinKind.INNER, "a <=> c AND d > 7", [(None, 30, None, 8)]),
        (
            JoinKind.LEFT,
            "a = c AND d = 5",
            [(1, 10, 1, 5), (2, 20, None, None), (2, 21, None, None), (None, 30, None, None)],
        ),
        (JoinKind.SEMI, "a = c", [(1, 10), (2, 20), (2, 21)]),
        (JoinKind.SEMI, "a <=> c", [(1, 10), (2, 20), (2, 21), (None, 30)]),
        (JoinKind.SEMI, "a > c AND d > 4 OR b = 30", [(2, 20), (2, 21), (None, 30)]),
        (JoinKind.SEMI, None, [(1, 10), (2, 20), (2, 21), (None, 30)]),
        (JoinKind.ANTI, "a = c", [(None, 30)]),
        (JoinKind.ANTI, "a < c", [(None, 30)]),
        (JoinKind.ANTI, "a <=> c OR a IS NULL", []),
        (JoinKind.ANTI, None, []),
    ],
)
def test_the_rows_of_a_join(kind, condition, expected):
    tree = Join(kind, LEFT, RIGHT, condition and e(condition))
    assert rows(duck(**TABLES).run(tree)) == expected


def test_a_left_join_without_condition_keeps_rows():
    empty = Filter(RIGHT, e("c > 99"))
    assert rows(duck(**TABLES).run(Join(JoinKind.LEFT, Project(LEFT, out(a="a")), empty))) == [
        (1, None, None),
        (2, None, None),
        (2, None, None),
        (None, None, None),
    ]


def test_spark_text_of_each_kind():
    head = "WITH `l_new` AS (SELECT `a`, `b` FROM `v_l_new`), `r_new` AS (SELECT `c`, `d` FROM `v_r_new`) "
    condition = e("a <=> c")
    assert spark(Join(JoinKind.INNER, LEFT, RIGHT, condition)) == (
        head + "SELECT `a`, `b`, `c`, `d` FROM `l_new` INNER JOIN `r_new` ON `a` IS NOT DISTINCT FROM `c`"
    )
    assert spark(Join(JoinKind.INNER, LEFT, RIGHT)).endswith("FROM `l_new` CROSS JOIN `r_new`")
    assert spark(Join(JoinKind.LEFT, LEFT, RIGHT)).endswith("FROM `l_new` LEFT JOIN `r_new` ON TRUE")
    assert spark(Join(JoinKind.SEMI, LEFT, RIGHT, condition)).endswith(
        "SELECT `a`, `b` FROM `l_new` LEFT SEMI JOIN `r_new` ON `a` IS NOT DISTINCT FROM `c`"
    )
    assert spark(Join(JoinKind.ANTI, LEFT, RIGHT, condition)).endswith(
        "LEFT ANTI JOIN `r_new` ON `a` IS NOT DISTINCT FROM `c`"
    )


def test_a_filter_on_a_join_comes_after_it():
    tree = Filter(Join(JoinKind.LEFT, LEFT, RIGHT, e("a = c")), e("c IS NULL"))
    assert spark(tree).endswith("LEFT JOIN `r_new` ON `a` = `c` WHERE `c` IS NULL")
    assert rows(duck(**TABLES).run(tree)) == [(None, 30, None, None)]


@pytest.mark.parametrize(
    "kind, small, hint",
    [
        (JoinKind.INNER, "left", "/*+ BROADCAST(`l_new`) */ "),
        (JoinKind.LEFT, "right", "/*+ BROADCAST(`r_new`) */ "),
        (JoinKind.SEMI, "right", "/*+ BROADCAST(`r_new`) */ "),
        (JoinKind.LEFT, "left", ""),
    ],
)
def test_a_small_side_is_broadcast_where_spark_can(kind, small, hint):
    tree = Join(kind, LEFT, RIGHT, e("a = c"), small)
    assert f") SELECT {hint}`a`" in spark(tree)
    assert "BROADCAST" not in lower(tree, named, "duckdb")


@pytest.mark.parametrize(
    "kind, small, built",
    [
        (JoinKind.INNER, "left", "l_new"),
        (JoinKind.INNER, None, "r_new"),
        (JoinKind.LEFT, "left", "r_new"),
        (JoinKind.ANTI, "right", "r_new"),
    ],
)
def test_a_task_alone_builds_a_table_of_the_small_side_where_it_can(kind, small, built):
    tree = Join(kind, LEFT, RIGHT, e("a = c"), small)
    assert f") SELECT /*+ SHUFFLE_HASH(`{built}`), COALESCE(1) */ `a`" in lower(tree, named, alone=True)
    assert "/*+" not in lower(tree, named, "duckdb", alone=True)


def test_postgres_has_exists():
    head = 'WITH "l_new" AS (SELECT "a", "b" FROM "v_l_new"), "r_new" AS (SELECT "c", "d" FROM "v_r_new") '
    anti = Filter(Join(JoinKind.ANTI, LEFT, RIGHT, e("a <=> c")), e("b > 1"))
    assert lower(anti, named, "postgres") == (
        head + 'SELECT "a", "b" FROM "l_new" WHERE "b" > 1 AND '
        'NOT EXISTS(SELECT 1 FROM "r_new" WHERE "a" IS NOT DISTINCT FROM "c")'
    )
    semi = lower(Join(JoinKind.SEMI, LEFT, RIGHT), named, "postgres")
    assert semi == head + 'SELECT "a", "b" FROM "l_new" WHERE EXISTS(SELECT 1 FROM "r_new")'
