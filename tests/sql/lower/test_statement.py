from __future__ import annotations

import pytest
from sqlglot import exp

from tests.sql.lower.given import Given, duck, e, named, out, rows, scan, spark
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Apply,
    ApplyKind,
    Face,
    Filter,
    InvalidTree,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    Step,
    TopK,
    UnionAll,
    Window,
    WindowOrder,
    col,
)
from trickle.sql.lower import lower

ORDERS = scan("orders", "id", "customer", "total")
SHOP: dict[str, Given] = {
    "orders": (["id", "customer", "total"], [(1, 10, 5), (2, 10, 7), (3, 20, None), (4, None, 1)]),
    "customers": (["key", "name"], [(10, "ann"), (20, "bob"), (30, "cy"), (None, "nobody")]),
}


def test_a_chain_of_projections_and_filters_is_one_select():
    tree = Filter(Project(Filter(ORDERS, e("total > 1")), out(id="id", twice="total * 2")), e("id <> 3"))
    assert spark(tree) == ("SELECT `id`, `total` * 2 AS `twice` FROM `v_orders_new` WHERE `total` > 1 AND `id` <> 3")
    assert rows(duck(**SHOP).run(tree)) == [(1, 10), (2, 14)]


def test_a_call_is_not_written_twice():
    inner = Project(ORDERS, out(x="slow(total)"))
    assert spark(Project(inner, out(y="x + x"))) == (
        "WITH `orders_new` AS (SELECT slow(`total`) AS `x` FROM `v_orders_new`) "
        "SELECT `x` + `x` AS `y` FROM `orders_new`"
    )
    assert spark(Filter(inner, e("x > 1"))) == (
        "WITH `orders_new` AS (SELECT slow(`total`) AS `x` FROM `v_orders_new`) "
        "SELECT `x` FROM `orders_new` WHERE `x` > 1"
    )
    assert spark(Project(inner, out(y="x + 1"))) == "SELECT slow(`total`) + 1 AS `y` FROM `v_orders_new`"


def test_substitution_does_not_explode():
    tree: Operator = Project(ORDERS, out(x="total"))
    for _ in range(30):
        tree = Project(tree, out(x="x + x"))
    assert len(spark(tree)) < 6000


def test_precedence_survives_folding():
    tree = Project(Project(ORDERS, out(s="total + 1", o="id = 1 OR id = 4")), out(p="s * 2", q="NOT o"))
    assert spark(tree) == ("SELECT (`total` + 1) * 2 AS `p`, NOT (`id` = 1 OR `id` = 4) AS `q` FROM `v_orders_new`")
    assert rows(duck(**SHOP).run(tree)) == [(4, False), (12, False), (16, True), (None, True)]


def test_renamed_columns_and_the_weight_of_a_change():
    tree = Scan("orders", (("id", "id_1"),), Face.CHANGE)
    assert spark(tree) == f"SELECT `id` AS `id_1`, `{WEIGHT}` FROM `v_orders_change`"


def test_located_rows_have_a_place():
    tree = Scan("orders", (("id", "id"),), Face.NEW, located=True)
    assert spark(tree) == f"SELECT `id`, `{FILE}`, `{ROW}` FROM `v_orders_new`"
    assert duck(**SHOP).run(tree)[ROW].to_pylist() == [0, 1, 2, 3]


def test_a_step_is_read_under_its_name():
    given = duck()
    given.bind("keys", [{"k": 1}, {"k": 2}])
    tree = Aggregate(Step("keys", (("k", "key"),)), (), out(n="count(*)"))
    assert rows(given.run(tree)) == [(2,)]


def test_a_global_aggregate_over_no_rows_has_a_row():
    tree = Aggregate(Filter(ORDERS, e("id > 99")), (), out(n="count(*)", s="sum(total)"))
    assert rows(duck(**SHOP).run(tree)) == [(0, None)]


def test_null_is_a_group():
    tree = Aggregate(ORDERS, ("customer",), out(n="count(total)", s="sum(total) FILTER (WHERE id <> 2)"))
    assert rows(duck(**SHOP).run(tree)) == [(10, 2, 5), (20, 0, None), (None, 1, 1)]
    assert spark(tree) == (
        "SELECT `customer`, count(`total`) AS `n`, sum(`total`) FILTER(WHERE `id` <> 2) AS `s` "
        "FROM `v_orders_new` GROUP BY `customer`"
    )


def test_distinct_is_grouping():
    tree = Aggregate(Project(ORDERS, out(customer="customer")), ("customer",))
    assert spark(tree) == "SELECT `customer` FROM `v_orders_new` GROUP BY `customer`"
    assert rows(duck(**SHOP).run(tree)) == [(10,), (20,), (None,)]


def test_a_constant_key_is_no_place_in_the_list():
    tree = Aggregate(Project(ORDERS, out(k="2", total="total")), ("k",), out(n="count(*)"))
    assert "GROUP BY `k`" in spark(tree)
    assert rows(duck(**SHOP).run(tree)) == [(2, 4)]


def test_an_argument_is_folded_into_its_aggregate():
    tree = Aggregate(Project(ORDERS, out(c="customer", x="total * 2")), ("c",), out(s="sum(x)"))
    assert "WITH" not in spark(tree)
    assert rows(duck(**SHOP).run(tree)) == [(10, 24), (20, None), (None, 2)]


def test_a_filter_on_an_aggregate_reads_it():
    tree = Filter(Aggregate(ORDERS, ("customer",), out(n="count(*)")), e("n > 1"))
    assert spark(tree).startswith("WITH `aggregate_1` AS (")
    assert rows(duck(**SHOP).run(tree)) == [(10, 2)]


def test_keys_that_swap_names():
    tree = Aggregate(Scan("orders", (("id", "customer"), ("customer", "id"))), ("id",), out(n="count(customer)"))
    assert rows(duck(**SHOP).run(tree)) == [(10, 2), (20, 1), (None, 1)]


def test_a_union_of_many():
    parts = [Project(Filter(ORDERS, e(f"id = {i}")), out(x=f"id + {i}")) for i in range(1, 4)]
    assert rows(duck(**SHOP).run(UnionAll(tuple(parts)))) == [(2,), (4,), (6,)]
    many = UnionAll(tuple(Project(ORDERS, out(x=f"id + {i}")) for i in range(400)))
    assert duck(**SHOP).run(many).num_rows == 1600
    assert spark(many).count("UNION ALL") == 399


def test_a_union_of_unions_aggregates_and_first_rows():
    one = Project(ORDERS, out(n="id"))
    top = TopK(one, (WindowOrder("n", descending=True),), 1)
    count = Aggregate(ORDERS, (), out(n="count(*)"))
    tree = UnionAll((top, UnionAll((count, one)), UnionAll((one,))))
    assert rows(duck(**SHOP).run(tree)) == [(1,), (1,), (2,), (2,), (3,), (3,), (4,), (4,), (4,), (4,)]


def test_a_window_after_a_filter():
    call = e("row_number() OVER (PARTITION BY customer ORDER BY total DESC)")
    tree = Window(Filter(ORDERS, e("id < 4")), ("customer",), (Output("place", call),))
    assert rows(duck(**SHOP).run(tree)) == [(1, 10, 5, 2), (2, 10, 7, 1), (3, 20, None, 1)]
    assert spark(tree) == (
        "SELECT `id`, `customer`, `total`, row_number() OVER (PARTITION BY `customer` ORDER BY `total` DESC) "
        "AS `place` FROM `v_orders_new` WHERE `id` < 4"
    )


@pytest.mark.parametrize(
    "order, offset, expected",
    [
        (WindowOrder("total"), 0, [None, 1]),
        (WindowOrder("total", nulls_first=False), 0, [1, 5]),
        (WindowOrder("total", descending=True), 0, [None, 7]),
        (WindowOrder("total", descending=True, nulls_first=False), 1, [5, 1]),
    ],
)
def test_the_first_rows_of_an_order(order, offset, expected):
    tree = Project(TopK(ORDERS, (order, WindowOrder("id")), 2, offset), out(total="total"))
    assert duck(**SHOP).run(tree)["total"].to_pylist() == expected


def test_all_rows_after_an_offset():
    tree = TopK(Project(ORDERS, out(id="id")), (WindowOrder("id"),), None, 3)
    assert rows(duck(**SHOP).run(tree)) == [(4,)]
    assert spark(tree) == "SELECT `id` FROM `v_orders_new` ORDER BY `id` OFFSET 3"


def test_equal_subtrees_are_computed_once():
    def customers() -> Operator:
        return Aggregate(Filter(scan("orders", "id", "customer", "total"), e("total > 1")), ("customer",))

    tree = UnionAll((customers(), Filter(customers(), e("customer = 10"))))
    text = spark(tree)
    assert text.count("GROUP BY") == 1
    assert text.startswith("WITH `distinct_1` AS (")
    assert rows(duck(**SHOP).run(tree)) == [(10,), (10,)]


def test_a_plan_that_holds_an_input_a_thousand_times_stays_small():
    tree: Operator = Project(ORDERS, out(x="id"))
    for i in range(10):
        tree = UnionAll((tree, Filter(tree, e(f"x <> {i}"))))
    assert spark(tree).count("UNION ALL") == 10
    assert duck(**SHOP).run(tree).num_rows == 4 * 2**10 - 4 * 2**9


def test_literals_that_differ_in_case_are_not_equal():
    tree = UnionAll((Project(ORDERS, out(x="'a'")), Project(ORDERS, out(x="'A'"))))
    assert {row for (row,) in rows(duck(**SHOP).run(tree))} == {"a", "A"}


HOSTILE = ["sp ace", 'quo"te', "back`tick", "apo'strophe", "semi;colon", "ünïcödé 表", "SELECT", "--", "a.b", "x\\y"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name):
    given = duck(**{name: ([name, "v"], [(1, 2), (3, 4)])})
    leaf = Scan(name, ((name, name), ("v", f"{name} 2")))
    keyed = Aggregate(leaf, (name,), (Output(f"{name} n", e("count(*)")),))
    other = Scan(name, ((name, f"{name} 3"),))
    equal = exp.EQ(this=col(name), expression=col(f"{name} 3"))
    tree = Join(JoinKind.INNER, keyed, other, equal)
    assert rows(given.run(tree)) == [(1, 1, 1), (3, 1, 3)]
    assert given.run(tree).column_names == list(tree.columns)
    quoted = name.replace("`", "``")
    assert f"`{quoted}`" in lower(tree, lambda _: name, "spark")


def test_names_of_expressions_differ_from_those_of_tables_and_columns():
    tree = Join(JoinKind.INNER, scan("t", "join_1"), scan("t", "x", suffix="2"), e("join_1 = x2"))
    text = lower(Aggregate(Filter(tree, e("x2 > 0")), ("x2",)), lambda _: "t_new", "spark")
    assert "`t_new_2` AS (" in text
    assert "`t_new` AS (" not in text
    shared = Filter(tree, e("x2 > 0"))
    assert "`join_2` AS (" in lower(UnionAll((shared, shared)), lambda _: "t", "spark")


def test_a_table_called_like_a_struct_is_given_another_name():
    assert lower(Scan("s", (("s", "s"),)), lambda _: "s") == "SELECT `s` FROM `s` AS `source_1`"


def test_columns_nobody_wants_leave_rows():
    none = Project(ORDERS, ())
    tree = Aggregate(Join(JoinKind.INNER, none, Scan("customers", ())), (), out(n="count(*)"))
    assert rows(duck(**SHOP).run(tree)) == [(16,)]
    assert rows(duck(**SHOP).run(Aggregate(UnionAll((none, none)), (), out(n="count(*)")))) == [(8,)]


def test_recursion_is_left_to_the_executor():
    tree = Recursion("r", ("n",), scan("t", "a"), RecursiveRef("r", ("b",)), distinct=True)
    with pytest.raises(UnsupportedQuery, match="no single statement"):
        lower(tree, named)
    assert lower(tree, named, "postgres_own") == (
        'WITH RECURSIVE "r_1"("n") AS ((SELECT "a" FROM "v_t_new") UNION (SELECT "n" AS "b" FROM "r_1"))'
        ' SELECT "n" FROM "r_1"'
    )


def test_a_subquery_that_was_not_rewritten_is_a_mistake():
    with pytest.raises(InvalidTree, match="Apply"):
        lower(Apply(ApplyKind.SEMI, scan("t", "a"), scan("u", "b")), named)


def test_postgres_text():
    tree = Filter(Aggregate(ORDERS, ("customer",), out(n="count_if(total > 1)", a="avg(total)")), e("a / n > 1"))
    assert lower(tree, named, "postgres") == (
        'WITH "aggregate_1" AS (SELECT "customer", COUNT(CASE WHEN "total" > 1 THEN 1 END) AS "n", AVG("total") AS "a" '
        'FROM "v_orders_new" GROUP BY "customer") SELECT "customer", "n", "a" FROM "aggregate_1" '
        'WHERE CAST("a" AS DOUBLE PRECISION) / NULLIF("n", 0) > 1'
    )
