"""Watermarks through ticks: loaders that finish at different times, and what their readers see."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.scenarios.gates.ticking import Ticking, frontier
from tests.scenarios.story import ask, contents, version_of

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SALES = "SELECT o.id, o.amount, p.name FROM orders o LEFT JOIN products p ON o.product = p.id"


def two_sources(day: Ticking) -> None:
    """Orders and products, filled, and a stream table that joins them."""
    day.t.sql("CREATE TABLE orders (id INT, product INT, amount INT); INSERT INTO orders VALUES (1, 1, 10)")
    day.t.sql("CREATE TABLE products (id INT, name STRING); INSERT INTO products VALUES (1, 'tea')")
    day.t.create_stream_table("sales", SALES)


def test_nightly_etl(day: Ticking) -> None:
    """Orders are loaded by two, products by three: nothing in between shows orders of unknown products."""
    t = day.t
    two_sources(day)
    t.create_watermark_group("nightly", ["orders", "products"])
    for night in range(1, 3):
        through = MIDNIGHT + timedelta(days=night)
        before = contents(t, "sales")
        t.sql(f"INSERT INTO orders VALUES ({night + 1}, {night + 1}, {10 * night})")
        t.advance_watermark("orders", through, by="orders-etl")
        assert day.tick(seconds=3600) == {"sales": "SKIP"}
        assert "nightly" in day.why("sales")
        assert contents(t, "sales") == before
        t.sql(f"INSERT INTO products VALUES ({night + 1}, 'product {night}')")
        assert day.tick(seconds=3600) == {"sales": "SKIP"}, "loaded, and its loader has not said so"
        t.advance_watermark("products", through, by="products-etl")
        [moved] = day.results(seconds=3600).values()
        assert moved.action != "SKIP"
        assert ask(t, "SELECT * FROM sales WHERE name IS NULL") == []
    assert len(day.computed("sales")) == 2, "one clean refresh a night"


def test_a_group_is_told_once_and_by_its_name(day: Ticking) -> None:
    t = day.t
    two_sources(day)
    t.create_watermark_group("nightly", ["orders", "products"])
    t.sql("INSERT INTO orders VALUES (2, 1, 20)")
    for _ in range(3):
        assert day.tick() == {"sales": "SKIP"}
    skips = [row for row in t.refresh_history("sales") if row.action == "SKIP"]
    assert [row.reason for row in skips] == ["watermark: no watermark yet for orders, products of group nightly"]
    assert json.loads(skips[0].details)["gate"] == "watermark"
    [status] = t.watermark_status()
    assert (status.aligned, status.sources_with_watermark, status.sources_total) == (False, 0, 2)
    assert "no watermark yet" in "\n".join(t.why_not_refreshed("sales"))


def test_micro_batches_within_a_tolerance(day: Ticking) -> None:
    """Two streams are never at the same second; what counts is that neither is half a minute ahead."""
    t = day.t
    two_sources(day)
    t.create_watermark_group("stream", ["orders", "products"], tolerance="30s")
    t.advance_watermark("orders", MIDNIGHT)
    t.advance_watermark("products", MIDNIGHT)
    for batch, (ahead, passes) in enumerate([(10, True), (30, True), (31, False), (40, False), (5, True)], 1):
        t.sql(f"INSERT INTO orders VALUES ({batch + 10}, 1, {batch})")
        start = MIDNIGHT + timedelta(minutes=batch)
        t.advance_watermark("products", start)
        t.advance_watermark("orders", start + timedelta(seconds=ahead))
        assert (day.tick()["sales"] != "SKIP") is passes, f"{ahead} seconds ahead"
    assert frontier(t, "sales")["orders"] == version_of(t, "orders")


def test_several_pipelines_do_not_wait_for_each_other(day: Ticking) -> None:
    t = day.t
    two_sources(day)
    t.sql("CREATE TABLE clicks (page INT); CREATE TABLE pages (id INT, title STRING)")
    t.create_stream_table(
        "visits", "SELECT p.title, count(*) AS n FROM clicks c JOIN pages p ON c.page = p.id GROUP BY 1"
    )
    t.create_stream_table("spread", "SELECT (SELECT count(*) FROM sales) AS sales, sum(n) AS visits FROM visits")
    t.create_watermark_group("shop", ["orders", "products"])
    t.create_watermark_group("web", ["clicks", "pages"])
    t.sql("INSERT INTO orders VALUES (2, 1, 20); INSERT INTO clicks VALUES (1); INSERT INTO pages VALUES (1, 'home')")
    assert day.tick() == {"sales": "SKIP", "visits": "SKIP", "spread": "SKIP"}
    for source in ("clicks", "pages"):
        t.advance_watermark(source, MIDNIGHT)
    found = day.tick()
    assert (found["sales"], found["spread"]) == ("SKIP", "SKIP"), "it reads both pipelines"
    assert found["visits"] != "SKIP"
    assert contents(t, "visits") == [("home", 1)]
    for source in ("orders", "products"):
        t.advance_watermark(source, MIDNIGHT)
    assert "SKIP" not in day.tick().values()
    assert contents(t, "spread") == [(2, 1)]


def test_mixed_external_and_internal_sources(day: Ticking) -> None:
    """A source that nobody loads from outside has no watermark and needs none."""
    t = day.t
    two_sources(day)
    t.sql("CREATE TABLE discounts (product INT, off INT); INSERT INTO discounts VALUES (1, 1)")
    t.create_stream_table(
        "offers", "SELECT o.id, o.amount - d.off AS price FROM orders o JOIN discounts d ON o.product = d.product"
    )
    t.create_stream_table("cuts", "SELECT max(off) AS off FROM discounts")
    t.create_watermark_group("nightly", ["orders", "products"])
    t.sql("INSERT INTO orders VALUES (2, 1, 20); UPDATE discounts SET off = 2")
    found = day.tick()
    assert (found["sales"], found["offers"]) == ("SKIP", "SKIP")
    assert found["cuts"] != "SKIP", "reads nothing of the group"
    for source in ("orders", "products"):
        t.advance_watermark(source, MIDNIGHT)
    assert "SKIP" not in day.tick().values()
    t.sql("UPDATE discounts SET off = 3")
    found = day.tick()
    assert set(found) == {"offers", "cuts"}, "the group stays aligned when an internal source moves"
    assert contents(t, "offers") == [(1, 7), (2, 17)]


def test_hold_back_excludes_rows_after_the_recorded_position(day: Ticking) -> None:
    t = day.t
    two_sources(day)
    t.create_watermark_group("nightly", ["orders", "products"], mode="hold_back")
    t.sql("INSERT INTO orders VALUES (2, 2, 20)")
    assert day.tick() == {}, "nothing is complete yet, and nobody is told to wait"
    t.advance_watermark("orders", MIDNIGHT)
    complete = version_of(t, "orders")
    t.sql("INSERT INTO orders VALUES (3, 3, 30)")
    t.advance_watermark("orders", MIDNIGHT + timedelta(hours=1))
    t.sql("INSERT INTO orders VALUES (4, 1, 40)")
    assert day.tick() == {}, "products have not said anything"
    t.sql("INSERT INTO products VALUES (2, 'milk')")
    t.advance_watermark("products", MIDNIGHT + timedelta(minutes=30))
    t.sql("INSERT INTO products VALUES (3, 'late')")
    assert "SKIP" not in day.tick().values()
    assert contents(t, "sales") == [(1, 10, "tea"), (2, 20, "milk")]
    assert frontier(t, "sales")["orders"] == complete
    assert day.tick() == {}, "what is held back is no reason to compute anything"
    t.advance_watermark("products", MIDNIGHT + timedelta(hours=2))
    day.tick()
    assert contents(t, "sales")[2:] == [(3, 30, None)], "complete up to one: orders as of one, products as of half past"
    t.advance_watermark("orders", MIDNIGHT + timedelta(hours=2))
    t.sql("INSERT INTO orders VALUES (5, 1, 50)")
    day.tick()
    assert contents(t, "sales")[2:] == [(3, 30, "late"), (4, 40, "tea")]
    t.drop_watermark_group("nightly")
    day.tick()
    assert len(contents(t, "sales")) == 5, "and without the group everything is read"


def test_a_stuck_watermark_is_told_once_until_it_moves(day: Ticking) -> None:
    t = day.t
    t.sql("SET trickle.watermark_stuck_after = '30m'")
    two_sources(day)
    t.create_watermark_group("nightly", ["orders", "products"])
    for source in ("orders", "products"):
        t.advance_watermark(source, MIDNIGHT)

    def told() -> list[str | None]:
        return [alert.name for alert in t.alerts() if alert.event == "watermark_stuck"]

    day.tick(seconds=1800)
    assert told() == []
    t.advance_watermark("orders", MIDNIGHT + timedelta(minutes=30))
    for _ in range(2):
        day.tick(seconds=60)
        assert told() == ["products"]
    t.advance_watermark("products", MIDNIGHT + timedelta(minutes=30))
    day.tick(seconds=60)
    day.tick(seconds=1800)
    assert sorted(filter(None, told())) == ["orders", "products", "products"]


def test_a_watermark_never_goes_back_and_the_same_again_changes_nothing(day: Ticking) -> None:
    t = day.t
    two_sources(day)
    first = t.advance_watermark("orders", MIDNIGHT)
    t.sql("INSERT INTO orders VALUES (2, 1, 20)")
    day.clock.advance(timedelta(minutes=5))
    assert t.advance_watermark("orders", MIDNIGHT) == first
