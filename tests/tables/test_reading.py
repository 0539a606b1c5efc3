"""Queries over everything: tables, views, stream tables, system views, older versions."""

from __future__ import annotations

import pytest

from tests.scenarios.story import ask, contents, listed, refused, state
from trickle.api import Trickle
from trickle.errors import (
    HistoryLost,
    QueryError,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
    UserError,
    WrongKind,
)


@pytest.mark.portable
def test_one_query_reads_tables_views_stream_tables_and_system_views(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id INT, n INT); INSERT INTO a VALUES (1, 10), (2, 20)")
    t.sql("CREATE VIEW v AS SELECT id FROM a WHERE n > 10")
    t.sql("CREATE STREAM TABLE s AS SELECT sum(n) AS total FROM a")
    text = """
        WITH big AS (SELECT a.id, a.n FROM a JOIN v ON a.id = v.id)
        SELECT big.id, s.total, st.status
        FROM big CROSS JOIN s JOIN trickle.stream_tables AS st ON st.name = 's'
        WHERE EXISTS (SELECT 1 FROM trickle.tables WHERE name = 'a' AND kind = 'TABLE')
    """
    assert ask(t, text) == [(2, 30, "ACTIVE")]


def test_names_have_two_parts_and_no_case(t: Trickle) -> None:
    t.sql("CREATE TABLE Shop.Orders (Id INT); CREATE TABLE orders (Id INT)")
    t.sql("INSERT INTO SHOP.orders VALUES (1); INSERT INTO default.Orders VALUES (2)")
    assert ask(t, "SELECT Shop.orders.id FROM shop.ORDERS") == [(1,)]
    assert ask(t, "SELECT o.id, s.id FROM orders o, shop.orders s") == [(2, 1)]
    assert contents(t, "SHOP.ORDERS") == [(1,)]
    assert contents(t, "`default`.`orders`") == [(2,)]
    assert [row.name for row in t.tables()] == ["orders", "Shop.Orders"]
    refused(t, "SELECT * FROM a.b.c", UserError, "one or two parts")


def test_a_common_table_expression_hides_a_table(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    assert ask(t, "WITH a AS (SELECT x + 1 AS x FROM a) SELECT * FROM a") == [(2,)]
    assert ask(t, "WITH nowhere AS (SELECT 5 AS x) SELECT * FROM nowhere") == [(5,)]


def test_older_versions_are_read_by_number(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2); DELETE FROM a WHERE x = 1")
    assert ask(t, "SELECT * FROM a VERSION AS OF 1") == [(1,)]
    assert contents(t, "a", version=2) == [(1,), (2,)]
    assert contents(t, "a", version=0) == []
    assert ask(t, "SELECT count(*) FROM a n FULL JOIN a VERSION AS OF 2 o ON n.x = o.x WHERE n.x IS NULL") == [(1,)]
    refused(t, "SELECT * FROM a VERSION AS OF 99", HistoryLost, "99")
    t.sql("CREATE VIEW v AS SELECT * FROM a")
    refused(t, "SELECT * FROM v VERSION AS OF 1", WrongKind, "a view has no versions")


def test_a_stream_table_is_read_at_the_version_that_its_last_refresh_made(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    first = state(t, "s").version
    t.sql("INSERT INTO a VALUES (2)")
    assert contents(t, "s") == [(1,)]
    t.sql("REFRESH STREAM TABLE s")
    assert contents(t, "s") == [(1,), (2,)]
    assert contents(t, "s", version=first) == [(1,)]
    t.sql("CREATE STREAM TABLE later WITH (initialize = false) AS SELECT x FROM a")
    refused(t, "SELECT * FROM later", UserError, "has not been filled yet", hint="REFRESH STREAM TABLE later")


def test_mistakes_name_what_was_meant(t: Trickle) -> None:
    t.sql("CREATE TABLE customers (id INT, name STRING)")
    refused(t, "SELECT * FROM custmers", UnknownTable, "no table is called custmers", hint="did you mean customers?")
    refused(t, "SELECT nam FROM customers", UnknownColumn, "unknown column nam", hint="did you mean")
    refused(t, "SELECT uper(name) FROM customers", UnknownFunction, "unknown function uper")
    refused(t, "SELECT id FROM customers GROUP BY name", QueryError, "id")
    refused(t, "SELECT * FROM trickle.stream_table", UnknownTable, "no system view", hint="trickle.stream_tables")


def test_explain_shows_a_plan_without_running_the_query(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (0)")
    with t.warehouse.engine.count_jobs() as count:
        (plan,) = listed(t, "EXPLAIN SELECT 1 / x AS y FROM a WHERE x > 0")
    assert "Filter" in str(plan["plan"])
    assert count.jobs == 0


def test_a_query_reads_one_moment_of_every_table(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    frame = t.table("a")
    t.sql("DELETE FROM a")
    assert frame.toArrow().num_rows == 1
    assert t.table("a").toArrow().num_rows == 0
