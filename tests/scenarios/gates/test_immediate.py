"""Gates and IMMEDIATE stream tables: a statement is followed or refused; there is nothing to hold back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.immediate.lake.checking import agree
from tests.scenarios.gates.ticking import Ticking
from tests.scenarios.story import contents, refused, state
from trickle.api import Trickle
from trickle.errors import Gated

SUMS = "SELECT k, sum(v) AS v FROM orders GROUP BY k"


@pytest.fixture
def shop(day: Ticking) -> Ticking:
    day.t.sql("CREATE TABLE orders (k INT, v INT); INSERT INTO orders SELECT id % 3, id FROM range(30)")
    return day


def nothing_was_changed_by(t: Trickle, statement: str, words: str, *names: str) -> None:
    """A statement is refused and leaves the tables as they were."""
    before = {name: (contents(t, name), state(t, name).version) for name in names}
    rows = contents(t, "orders")
    refused(t, statement, Gated, words, hint="nothing was changed")
    assert contents(t, "orders") == rows
    assert {name: (contents(t, name), state(t, name).version) for name in names} == before


def test_a_statement_that_is_too_large_for_the_fuse_is_refused(shop: Ticking) -> None:
    t = shop.t
    t.create_stream_table("sums", SUMS, refresh_mode="IMMEDIATE", fuse="fixed", fuse_ceiling=10)
    t.create_stream_table("most", "SELECT max(v) AS v FROM sums", refresh_mode="IMMEDIATE")
    for statement in ("DELETE FROM orders WHERE v < 20", "INSERT INTO orders SELECT 1, id FROM range(11)"):
        nothing_was_changed_by(t, statement, "refused by the fuse of sums", "sums", "most")
    assert state(t, "sums").fuse_state == "ARMED", "nothing waits behind it"
    t.sql("DELETE FROM orders WHERE v < 5")
    agree(t)
    t.alter_stream_table("sums", fuse="none")
    t.sql("DELETE FROM orders WHERE v < 20")
    agree(t)


def test_few_rows_of_a_source_that_are_many_of_the_table_are_refused_when_staged(shop: Ticking) -> None:
    t = shop.t
    t.sql("CREATE TABLE rates (k INT, rate INT); INSERT INTO rates VALUES (0, 1), (1, 1), (2, 1)")
    t.create_stream_table(
        "prices",
        "SELECT o.v, o.v * r.rate AS price FROM orders o JOIN rates r ON o.k = r.k",
        refresh_mode="IMMEDIATE",
        fuse="fixed",
        fuse_ceiling=5,
    )
    nothing_was_changed_by(t, "UPDATE rates SET rate = 2 WHERE k = 1", "refused by the fuse of prices", "prices")
    assert contents(t, "rates") == [(0, 1), (1, 1), (2, 1)]
    t.sql("INSERT INTO orders VALUES (1, 100)")
    agree(t)


def test_the_fuse_of_a_source_guards_it_and_does_not_stop_statements_when_blown(shop: Ticking) -> None:
    """Deferred readers of the source let small statements add up until it blows; statements are judged one by one."""
    day, t = shop, shop.t
    t.create_stream_table("sums", SUMS, refresh_mode="IMMEDIATE")
    t.create_stream_table("later", "SELECT count(*) AS n FROM orders")
    t.set_source_fuse("orders", "fixed", fuse_ceiling=6)
    nothing_was_changed_by(t, "DELETE FROM orders WHERE v < 20", "refused by the fuse of orders", "sums")
    for number in range(3):
        t.sql(f"INSERT INTO orders VALUES (7, {number}), (7, {number}), (7, {number})")
    assert day.tick() == {"later": "SKIP"}
    assert "fuse" in day.why("later")
    t.sql("INSERT INTO orders VALUES (8, 8)")
    agree(t, "sums")


def test_a_gate_of_the_user_refuses_the_statement(shop: Ticking) -> None:
    t = shop.t
    t.create_stream_table("sums", SUMS, refresh_mode="IMMEDIATE")
    t.register_gate("positive", "SELECT count(*) = 0 FROM inserted WHERE v < 0", tables=["sums"])
    t.register_gate("known", "SELECT count(*) = 0 FROM orders WHERE k IS NULL", tables=["sums"])
    nothing_was_changed_by(t, "INSERT INTO orders VALUES (1, -1000)", "user gate positive", "sums")
    nothing_was_changed_by(t, "INSERT INTO orders VALUES (NULL, 1)", "user gate known", "sums")
    t.sql("INSERT INTO orders VALUES (1, 1)")
    t.sql("UPDATE orders SET v = v WHERE k = 1")
    agree(t)


def test_loads_and_watermarks_do_not_hold_a_statement_back(shop: Ticking) -> None:
    """What holds deferred readers back; the IMMEDIATE one shows what its source shows."""
    day, t = shop, shop.t
    t.sql("CREATE TABLE payments (v INT)")
    t.create_stream_table("sums", SUMS, refresh_mode="IMMEDIATE")
    t.create_stream_table("later", "SELECT count(*) AS n FROM sums")
    t.gate_source("orders")
    t.create_watermark_group("money", ["orders", "payments"])
    t.advance_watermark("orders", datetime(2026, 1, 1, tzinfo=UTC))
    t.sql("INSERT INTO orders VALUES (9, 9)")
    agree(t, "sums")
    assert day.tick() == {"later": "SKIP"}
    assert contents(t, "later") == [(3,)]
    t.ungate_source("orders")
    assert "watermark" in (day.tick() and day.why("later"))
    t.sql("INSERT INTO orders VALUES (10, 9)")
    agree(t, "sums")
    t.advance_watermark("payments", datetime(2026, 1, 1, tzinfo=UTC))
    assert day.tick()["later"] != "SKIP"
    assert contents(t, "later") == [(5,)]


def test_ways_that_meet_are_one_unit_without_a_group(shop: Ticking) -> None:
    """A diamond of IMMEDIATE stream tables: no state of it is ever seen in which the ways differ."""
    day, t = shop, shop.t
    t.create_stream_table("sums", SUMS, refresh_mode="IMMEDIATE")
    t.create_stream_table("counts", "SELECT k, count(*) AS n FROM orders GROUP BY k", refresh_mode="IMMEDIATE")
    t.create_stream_table(
        "means", "SELECT s.k, s.v, c.n FROM sums s JOIN counts c ON s.k = c.k", refresh_mode="IMMEDIATE"
    )
    t.create_stream_table("report", "SELECT m.k, m.v, m.n, s.v AS w FROM means m JOIN sums s ON m.k = s.k")
    for statement in ("INSERT INTO orders VALUES (3, 3)", "DELETE FROM orders WHERE k = 0"):
        t.sql(statement)
        agree(t, "sums", "counts", "means")
        assert set(day.tick()) == {"report"}
        assert all(row[1] == row[3] for row in contents(t, "report"))
    assert [row for row in t.diamond_groups() if row.member in ("sums", "counts", "means")] == []
