"""IMMEDIATE stream tables over each other, over several tables, and under deferred ones."""

from __future__ import annotations

from datetime import timedelta

from tests.immediate.lake.checking import agree, pinned
from tests.scenarios.gates.conftest import day as day
from tests.scenarios.gates.ticking import Ticking
from tests.scenarios.story import contents, state
from trickle.api import Trickle
from trickle.testing import check


def build(t: Trickle) -> None:
    """Two tables, a join of both through a view, sums over the join, and their maximum: each over the one before."""
    t.sql("CREATE TABLE orders (id INT, customer INT, amount INT); CREATE TABLE customers (id INT, region STRING)")
    t.sql("INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, NULL)")
    t.sql("INSERT INTO orders SELECT id, id % 4, id FROM range(20)")
    t.sql("CREATE VIEW big AS SELECT * FROM orders WHERE amount > 3")
    joined = "SELECT b.id, b.amount, c.region FROM big b LEFT JOIN customers c ON b.customer = c.id"
    t.create_stream_table("placed", joined, refresh_mode="IMMEDIATE")
    t.create_stream_table(
        "regions", "SELECT region, sum(amount) AS v FROM placed GROUP BY region", refresh_mode="IMMEDIATE"
    )
    t.create_stream_table("best", "SELECT max(v) AS v FROM regions", refresh_mode="IMMEDIATE")
    t.create_stream_table(
        "shares",
        "SELECT p.id, p.amount / r.v AS share FROM placed p JOIN regions r ON p.region IS NOT DISTINCT FROM r.region",
        refresh_mode="IMMEDIATE",
    )


def test_a_cascade_moves_in_one_unit(t: Trickle) -> None:
    build(t)
    assert pinned(t) == {"orders", "customers"}
    agree(t)
    for text in (
        "INSERT INTO orders VALUES (100, 1, 50), (101, 9, 1)",
        "UPDATE customers SET region = 'south' WHERE id = 1",
        "DELETE FROM orders WHERE id % 2 = 0",
        "INSERT INTO customers VALUES (0, 'north'), (1, 'twice')",
        "TRUNCATE TABLE customers",
    ):
        t.sql(text)
        agree(t)
    intents = [row for row in t.refresh_history("best") if row.status == "COMPLETED"]
    assert len(intents) == 6, "its fill, and one refresh for each statement"


def test_what_a_statement_does_not_concern_is_left_alone(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE TABLE b (x INT)")
    t.create_stream_table("of_a", "SELECT sum(x) AS x FROM a", refresh_mode="IMMEDIATE")
    t.create_stream_table("of_b", "SELECT sum(x) AS x FROM b", refresh_mode="IMMEDIATE")
    before = state(t, "of_b").version
    t.sql("INSERT INTO a VALUES (1), (2)")
    agree(t)
    assert contents(t, "of_a") == [(3,)]
    assert state(t, "of_b").version == before


def test_a_tick_leaves_it_alone_and_deferred_tables_read_it(day: Ticking) -> None:
    t = day.t
    t.sql("CREATE TABLE orders (k INT, v INT); INSERT INTO orders VALUES (1, 1), (2, 2)")
    t.create_stream_table("sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k", refresh_mode="IMMEDIATE")
    t.create_stream_table("both", "SELECT s.k, s.v, o.v AS own FROM sums s JOIN orders o ON s.k = o.k", schedule="1m")
    assert day.tick() == {}
    t.sql("INSERT INTO orders VALUES (1, 10), (3, 3)")
    agree(t, "sums")
    assert contents(t, "both") == [(1, 1, 1), (2, 2, 2)], "it waits for its schedule"
    found = day.tick()
    assert "sums" not in found
    assert found["both"] != "SKIP"
    assert contents(t, "both") == [(1, 11, 1), (1, 11, 10), (2, 2, 2), (3, 3, 3)]
    check(t)
    day.clock.advance(timedelta(hours=1))
    assert day.tick() == {}
    assert all(row.initiated_by != "SCHEDULER" for row in t.refresh_history("sums"))
    assert t.why_not_refreshed("sums") == ["sums is IMMEDIATE: it changes with its sources, and nothing refreshes it"]
    assert [row.name for row in t.dependency_tree()] == ["both", "orders", "sums", "orders"]
    assert "sums" in t.explain_dag()
