"""The fuse through ticks: what a scheduler does with a blown fuse, and after each way to reset it."""

from __future__ import annotations

import json

import pytest

import trickle
from tests.scenarios.gates.ticking import Ticking, frontier
from tests.scenarios.story import contents, state, version_of
from trickle.engine import Engine
from trickle.testing import check

SUMMARY = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
BY_CHANGES = "DIFFERENTIAL"


@pytest.fixture
def shop(day: Ticking) -> Ticking:
    """100 orders of 5 customers, a guarded summary, and a board that reads it."""
    t = day.t
    t.sql("CREATE TABLE orders (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO orders SELECT CAST(id AS INT), concat('c', id % 5), 1 FROM range(100)")
    t.create_stream_table("summary", SUMMARY, refresh_mode=BY_CHANGES, fuse="fixed", fuse_ceiling=30)
    t.create_stream_table(
        "board", "SELECT count(*) AS customers, sum(total) AS total FROM summary", refresh_mode=BY_CHANGES
    )
    return day


def emptied(day: Ticking) -> None:
    """An ETL failure, and the tick after it."""
    day.t.sql("CREATE TABLE copy (id INT, customer STRING, amount INT); INSERT INTO copy SELECT * FROM orders")
    day.t.sql("DELETE FROM orders")
    assert day.tick() == {"summary": "SKIP", "board": "SKIP"}
    assert day.t.fuse_status()[0].state == "BLOWN"


def test_ordinary_changes_pass(shop: Ticking) -> None:
    shop.t.sql("INSERT INTO orders VALUES (100, 'c1', 5)")
    assert shop.tick() == {"summary": "DIFFERENTIAL", "board": "DIFFERENTIAL"}
    assert shop.tick() == {}, "and a tick without changes computes nothing"


def test_a_blown_fuse_blocks_every_tick_and_is_told_once(shop: Ticking, engine: Engine) -> None:
    t = shop.t
    before, version = contents(t, "summary"), state(t, "summary").version
    emptied(shop)
    assert shop.why("summary") == "fuse: delta of 100 changed rows exceeds ceiling 30"
    assert shop.tick() == {"summary": "SKIP", "board": "SKIP"}
    rows = len(t.refresh_history())
    t.sql("INSERT INTO orders VALUES (1000, 'late', 1)")
    for _ in range(3):
        assert shop.tick() == {"summary": "SKIP", "board": "SKIP"}
    assert len(t.refresh_history()) == rows, "the history does not repeat itself"
    assert (contents(t, "summary"), state(t, "summary").version) == (before, version)
    with trickle.connect(t.warehouse.root.uri, spark=engine.spark, clock=shop.clock) as again:
        assert Ticking(again, shop.clock).tick() == {"summary": "SKIP", "board": "SKIP"}, "it outlives the process"


def test_apply_lets_the_next_tick_go_on(shop: Ticking) -> None:
    emptied(shop)
    shop.t.reset_fuse("summary", "apply")
    assert shop.tick() == {"summary": "DIFFERENTIAL", "board": "DIFFERENTIAL"}
    assert contents(shop.t, "summary") == []
    assert shop.tick() == {}
    shop.t.sql("INSERT INTO orders SELECT CAST(id AS INT), 'again', 1 FROM range(31)")
    assert shop.tick()["summary"] == "SKIP", "the next one is guarded again"


def test_reinitialize_has_the_next_tick_compute_it_anew(shop: Ticking) -> None:
    emptied(shop)
    shop.t.sql("INSERT INTO orders SELECT id, 'repaired', 2 FROM copy")
    shop.t.reset_fuse("summary", "reinitialize")
    assert shop.tick()["summary"] == "REINITIALIZE"
    assert contents(shop.t, "summary") == [("repaired", 200)]
    assert contents(shop.t, "board") == [(1, 200)]


def test_skip_changes_goes_on_from_where_the_source_stands(shop: Ticking) -> None:
    t = shop.t
    before = contents(t, "summary")
    emptied(shop)
    t.sql("INSERT INTO orders SELECT * FROM copy")
    t.reset_fuse("summary", "skip_changes")
    assert frontier(t, "summary")["orders"] == version_of(t, "orders")
    assert shop.tick() == {}
    assert contents(t, "summary") == before
    t.sql("INSERT INTO orders VALUES (100, 'c1', 5)")
    assert shop.tick() == {"summary": "DIFFERENTIAL", "board": "DIFFERENTIAL"}


def test_skipped_changes_stay_out_when_they_were_not_undone(shop: Ticking) -> None:
    """The caller chose that: the summary keeps customers without orders, and later changes come on top."""
    t = shop.t
    before = contents(t, "summary")
    emptied(shop)
    t.reset_fuse("summary", "skip_changes")
    t.sql("INSERT INTO orders VALUES (100, 'new', 5)")
    assert shop.tick(checked=False) == {"summary": "DIFFERENTIAL", "board": "DIFFERENTIAL"}
    assert contents(t, "summary") == [*before, ("new", 5)]
    check(t, "board")


def test_the_alert_has_the_payload_of_the_seed(shop: Ticking) -> None:
    emptied(shop)
    shop.tick()
    [alert] = [alert for alert in shop.t.alerts() if alert.event == "fuse_blown"]
    assert (alert.severity, alert.name) == ("CRITICAL", "summary")
    payload = json.loads(alert.payload)
    wanted = {
        "event": "fuse_blown",
        "schema": "default",
        "st_name": "summary",
        "delta_row_count": 100,
        "baseline_mean": None,
        "baseline_stddev": None,
        "ceiling": 30,
        "blow_reason": "delta of 100 changed rows exceeds ceiling 30",
    }
    assert payload | wanted == payload


def test_a_blown_member_blocks_the_whole_diamond(day: Ticking) -> None:
    t = day.t
    t.sql("CREATE TABLE orders (k INT, v INT); INSERT INTO orders SELECT id % 3, id FROM range(60)")
    t.create_stream_table("sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k", fuse="fixed", fuse_ceiling=20)
    t.create_stream_table("counts", "SELECT k, count(*) AS n FROM orders GROUP BY k")
    t.create_stream_table("means", "SELECT s.k, s.v / c.n AS mean FROM sums s JOIN counts c ON s.k = c.k")
    members = ("sums", "counts", "means")
    before = {name: contents(t, name) for name in members}
    t.sql("DELETE FROM orders WHERE v < 30")
    assert day.tick() == dict.fromkeys(members, "SKIP")
    assert "sums of" in day.why("counts")
    assert "its fuse" in day.why("counts")
    t.sql("INSERT INTO orders VALUES (1, 1)")
    assert day.tick() == dict.fromkeys(members, "SKIP")
    assert {name: contents(t, name) for name in members} == before
    t.reset_fuse("sums", "apply")
    assert set(day.tick()) == set(members)
    assert len({frontier(t, name)["orders"] for name in ("sums", "counts")}) == 1


def test_downstream_sees_no_changes_and_says_why(shop: Ticking) -> None:
    """A table that mixes the held summary with another source waits; one that does not read it goes on."""
    t = shop.t
    t.sql("CREATE TABLE rates (customer STRING, rate INT); INSERT INTO rates VALUES ('c1', 2), ('c2', 3)")
    t.create_stream_table(
        "priced", "SELECT s.customer, s.total * r.rate AS price FROM summary s JOIN rates r ON s.customer = r.customer"
    )
    t.create_stream_table("top", "SELECT max(price) AS price FROM priced")
    t.create_stream_table("rated", "SELECT count(*) AS n FROM rates", refresh_mode=BY_CHANGES)
    before = contents(t, "priced")
    t.sql("DELETE FROM orders; INSERT INTO rates VALUES ('c3', 9)")
    assert shop.tick() == {"summary": "SKIP", "board": "SKIP", "priced": "SKIP", "top": "SKIP", "rated": "DIFFERENTIAL"}
    assert "upstream summary is held: " in shop.why("priced")
    assert "exceeds ceiling 30" in shop.why("priced")
    assert "upstream priced is held: upstream summary is held" in shop.why("top")
    assert contents(t, "priced") == before
    told = "\n".join(t.why_not_refreshed("top"))
    assert "upstream priced is held" in told
    t.reset_fuse("summary", "apply")
    assert "SKIP" not in shop.tick().values()
    assert contents(t, "priced") == []


def test_a_source_fuse_holds_all_readers_by_ticks(shop: Ticking) -> None:
    t = shop.t
    t.create_stream_table("counted", "SELECT count(*) AS n FROM orders")
    t.set_source_fuse("orders", "fixed", fuse_ceiling=10)
    t.sql("DELETE FROM orders WHERE id < 20")
    found = shop.tick()
    assert found == {"summary": "SKIP", "board": "SKIP", "counted": "SKIP"}
    assert "fuse of orders" in shop.why("counted")
    t.reset_fuse("orders", "apply")
    assert "SKIP" not in shop.tick().values()
