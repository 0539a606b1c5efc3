"""What Trickle tells about stream tables and queries, and that telling it computes nothing."""

from __future__ import annotations

import pytest

from tests.scenarios.story import listed, refreshed
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.delta.plan import OWN
from trickle.delta.stages import split
from trickle.errors import InvalidOption, ParseError, UnsupportedQuery, UserError
from trickle.operators import Step
from trickle.refresh.explain.constructs import CHANGES, WHOLE, constructs
from trickle.refresh.explain.parts import parts_of
from trickle.sql.build import build_tree
from trickle.sql.canonical.parsing import root_of
from trickle.sql.lower import lower
from trickle.sql.rewrites import rewrite

TOTALS = """
SELECT upper(customer) AS who, sum(amount) AS total, avg(weight) AS heavy, max(amount) AS most, count(*) AS n
FROM orders GROUP BY customer
"""
CITIES = """
SELECT city, max(total) AS best
FROM customers JOIN (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) ON name = customer
GROUP BY city
"""


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("""
        CREATE TABLE orders (id INT, customer STRING, amount DECIMAL(10, 2), weight DOUBLE);
        INSERT INTO orders SELECT id, concat('c', id % 7), id, id FROM range(100);
        CREATE TABLE customers (name STRING, city STRING);
        INSERT INTO customers VALUES ('c1', 'Paris'), ('c2', 'Rome');
    """)
    return t


def kinds(text: str) -> list[tuple[str, str]]:
    return [(found.name, found.kept) for found in constructs(root_of(text, 64))]


def test_constructs_come_in_the_order_of_the_text() -> None:
    found = kinds("""
        SELECT DISTINCT a, sum(b) FILTER (WHERE c > 1) AS s, rank() OVER (ORDER BY a) AS r, explode(x) AS y
        FROM t LEFT JOIN u ON t.a = u.a CROSS JOIN v
        WHERE NOT EXISTS (SELECT 1 FROM w) AND a IN (SELECT max(q) FROM z)
        GROUP BY ROLLUP (a, c) HAVING count(DISTINCT b) > 1
    """)
    assert found == [
        ("DISTINCT", CHANGES),
        ("sum()", CHANGES),
        ("rank() OVER", WHOLE),
        ("explode()", CHANGES),
        ("LEFT JOIN", CHANGES),
        ("CROSS JOIN", CHANGES),
        ("NOT EXISTS", CHANGES),
        ("IN (SELECT ...)", CHANGES),
        ("max()", CHANGES),
        ("ROLLUP", CHANGES),
        ("HAVING", CHANGES),
        ("count(DISTINCT)", CHANGES),
    ]


def test_set_operations_orders_and_recursion_are_told_apart() -> None:
    assert kinds("SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a LIMIT 3 OFFSET 1") == [
        ("UNION ALL", CHANGES),
        ("LIMIT OFFSET", CHANGES),
    ]
    recursive = "WITH RECURSIVE n AS (SELECT 1 AS x UNION {} SELECT x + 1 FROM n WHERE x < 5) SELECT x FROM n"
    assert ("WITH RECURSIVE", WHOLE) in kinds(recursive.format("ALL"))
    assert ("WITH RECURSIVE", CHANGES) in kinds(recursive.format(""))


def test_the_clock_is_followed_in_conditions_and_changes_every_row_in_columns() -> None:
    found = kinds("SELECT current_date() AS d FROM t WHERE at > now() - INTERVAL 7 DAYS")
    assert found == [("current_date()", WHOLE), ("now()", CHANGES)]


def test_a_recursion_is_told_in_parts_that_are_statements() -> None:
    text = """
        WITH RECURSIVE r AS (SELECT a, b FROM edges UNION ALL SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a)
        SELECT a, b FROM r
    """
    tree = rewrite(build_tree(text, {TableName.of(["edges"]): {"a": "int", "b": "int"}}))
    (stage,) = split(tree, lambda _: (), OWN)
    parts = parts_of(stage.keeping.change())
    assert [part.title for part in parts] == ["recursion 1, start", "recursion 1, each round", "change"]
    statements = [lower(part.tree, lambda leaf: leaf.name if isinstance(leaf, Step) else leaf.table) for part in parts]
    assert "`recursion 1, round before`" in statements[1]
    assert "`recursion 1`" in statements[2]


def test_a_stream_table_tells_how_it_is_kept(shop: Trickle) -> None:
    shop.create_stream_table("cities", CITIES)
    facts = {(fact.about, fact.property): fact.value for fact in shop.explain_st("cities")}
    assert facts["cities", "can be kept"] == "by changes"
    assert facts["cities", "last refresh"].startswith("FULL COMPLETED")
    assert facts["source orders", "frontier"] == facts["source orders", "stands at"] == "version 1"
    assert facts["inner table 1", "is kept"] == "by groups of customer"
    assert facts["inner table 1", "SUM(amount)"].startswith("algebraic")
    assert facts["cities", "reads"] == "inner table 1, customers"
    assert facts["cities", "MAX(SUM(amount))"].startswith("extremum")
    assert facts["cities", "columns"] == "city, best, __trickle_count (hidden)"


def test_why_a_stream_table_is_kept_in_full(shop: Trickle) -> None:
    shop.create_stream_table("drawn", "SELECT id, rand() AS r FROM orders")
    facts = {fact.property: fact.value for fact in shop.explain_st("drawn")}
    assert facts["can be kept"] == "in full only"
    assert facts["why in full"].endswith("(UNSTEADY)")
    assert shop.list_auxiliary_columns("drawn") == []
    with pytest.raises(UserError, match="kept in full only"):
        shop.explain_delta("drawn")


def test_what_is_told_is_what_the_refresh_then_does(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS)
    idle = shop.explain_refresh_mode("totals")
    assert (idle.action, idle.changed_rows, idle.threshold) == ("NO_DATA", 0, 0.15)
    shop.sql("DELETE FROM orders WHERE id = 50")
    told = shop.explain_refresh_mode("totals")
    assert (told.action, told.code, told.changed_rows) == ("DIFFERENTIAL", "CHANGE_RATIO", 1)
    assert [(s.name, s.changed, s.changed_rows, s.source_rows) for s in told.sources] == [("orders", True, 1, 99)]
    assert told.full_ms is not None
    assert told.changes_ms is None
    done = refreshed(shop, "totals")
    assert (done.action, done.reason) == (told.action, told.reason)
    shop.sql("UPDATE orders SET amount = amount + 1")
    told = shop.explain_refresh_mode("totals")
    assert told.action == "FULL"
    shop.suspend_stream_table("totals")
    assert shop.explain_refresh_mode("totals").code == "SUSPENDED"


def test_a_replaced_source_is_built_anew(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, refresh_mode="DIFFERENTIAL")
    shop.sql("CREATE OR REPLACE TABLE orders (id INT, customer STRING, amount DECIMAL(10, 2), weight DOUBLE)")
    told = shop.explain_refresh_mode("totals")
    assert (told.action, told.code) == ("REINITIALIZE", "REDEFINED")


def test_hidden_columns_have_a_purpose(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS)
    stored = {f.name for f in shop.table("totals").schema.fields}
    found = {column.column: (column.type, column.purpose) for column in shop.list_auxiliary_columns("totals")}
    assert not stored & set(found)
    assert found["__trickle_key_0"] == ("string", "the key customer, which the query does not show")
    assert found["__trickle_sum_1"] == ("double", "SUM(weight), kept for AVG(weight)")
    shop.create_stream_table("first", "SELECT id FROM orders ORDER BY weight DESC, id LIMIT 2")
    assert [vars(c) for c in shop.list_auxiliary_columns("first")] == [
        {
            "table": "first",
            "column": "__trickle_top_1",
            "type": "double",
            "purpose": "weight, which tells the order or the row",
        }
    ]


def test_the_plan_of_the_change_in_three_forms_without_a_job(shop: Trickle) -> None:
    shop.create_stream_table("cities", CITIES)
    with shop.warehouse.engine.count_jobs() as count:
        tree, sql, spark = (shop.explain_delta("cities", form) for form in ("tree", "sql", "spark"))
    assert count.jobs == 0
    for lines in (tree, sql, spark):
        assert [line for line in lines if not line.startswith(" ")] == [
            "inner table 1, kept by groups of customer",
            "cities, kept by groups of city",
        ]
    assert "scan orders change: customer as c0, amount as c2" in [line.strip() for line in tree]
    assert "FROM `orders (change)`" in "\n".join(sql)
    assert "LocalTableScan" in "\n".join(spark)
    with pytest.raises(InvalidOption, match="no format 'xml'"):
        shop.explain_delta("cities", "xml")


def test_a_query_is_followed_from_its_text_to_its_stages(shop: Trickle) -> None:
    lines = shop.explain_query_rewrite("SELECT customer, first(id) AS f FROM orders GROUP BY customer")
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles[:4] == ["query:", "made definite:", "notices:", "tree:"]
    assert titles[-1] == "stage 1, query:"
    nested = shop.explain_query_rewrite(
        "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers WHERE name = customer)"
    )
    assert "after decorrelate:" in nested
    assert any("apply semi" in line for line in nested)
    assert any("semi join on" in line for line in nested)


def test_a_query_is_judged_before_it_is_a_stream_table(shop: Trickle) -> None:
    shop.sql("CREATE VIEW named AS SELECT DISTINCT customer FROM orders")
    verdict, *found = shop.validate_query(
        "SELECT count(*) AS n, avg(weight) AS w, max(c.name) AS m\n"
        "FROM orders o LEFT JOIN customers c ON c.name = o.customer, named"
    )
    assert verdict.kept == "DIFFERENTIAL"
    assert [(one.construct, one.place) for one in found] == [
        ("count()", "line 1, column 8"),
        ("avg()", "line 1, column 23"),
        ("max()", "line 1, column 41"),
        ("LEFT JOIN", "line 2, column 25"),
        ("CROSS JOIN", "line 2, column 61"),
        ("DISTINCT", "view named, line 1, column 17"),
    ]
    how = {one.construct: one.how for one in found}
    assert "when one of its rows is deleted" in how["avg()"]
    assert how["max()"].startswith("extremum")


def test_a_query_that_is_kept_in_full_says_why_and_where(shop: Trickle) -> None:
    verdict, *_ = shop.validate_query("SELECT rand() AS r FROM orders")
    assert verdict.kept == "FULL"
    assert verdict.how.endswith("(UNSTEADY)")
    verdict, *_ = shop.validate_query("SELECT *\nFROM orders PIVOT (sum(amount) FOR customer IN ('c1'))")
    assert (verdict.kept, verdict.how) == ("FULL", "PIVOT is not supported (UNSUPPORTED)")
    assert verdict.place is not None
    assert verdict.place.startswith("line 2")


@pytest.mark.parametrize(
    "text, error",
    [("SELECT id FROM orders LIMIT 3", UnsupportedQuery), ("SELECT id FROM", ParseError), ("DROP TABLE x", ParseError)],
)
def test_what_no_stream_table_can_have_is_refused(shop: Trickle, text: str, error: type[Exception]) -> None:
    for ask in (shop.validate_query, shop.explain_query_rewrite):
        with pytest.raises(error):
            ask(text)
    assert shop.status() == []


def test_sql_and_python_tell_the_same(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS)
    assert listed(shop, "CALL trickle.explain_st('totals')") == [vars(fact) for fact in shop.explain_st("totals")]
    plan = listed(shop, "CALL trickle.explain_delta('totals', format => 'sql')")
    assert [row["value"] for row in plan] == shop.explain_delta("totals", "sql")
    assert listed(shop, "CALL trickle.explain_refresh_mode('totals')")[0]["action"] == "NO_DATA"
    assert listed(shop, "CALL trickle.validate_query('SELECT 1 AS a')")[0]["kept"] == "DIFFERENTIAL"
