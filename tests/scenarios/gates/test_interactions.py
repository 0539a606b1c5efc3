"""Gates together: every row of the seed's table of interactions whose features exist.

Not here: blue-green deployment, which Trickle does not have yet. IMMEDIATE mode is in ``test_immediate.py``.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.scenarios.gates.ticking import Ticking, frontier, written_meanwhile
from tests.scenarios.story import contents, version_of
from trickle.api import Trickle

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
DIAMOND = ("sums", "counts", "means")


def diamond(t: Trickle, **options: Any) -> None:
    """Sums and counts of the same rows, and a table that reads both; the options are those of the sums."""
    t.sql("CREATE TABLE orders (k INT, v INT); INSERT INTO orders SELECT id % 3, id FROM range(60)")
    t.create_stream_table("sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k", **options)
    t.create_stream_table("counts", "SELECT k, count(*) AS n FROM orders GROUP BY k")
    t.create_stream_table("means", "SELECT s.k, s.v, c.n FROM sums s JOIN counts c ON s.k = c.k")


def aligned(t: Trickle, *sources: str, hours: int = 0) -> None:
    """All of these are complete up to the same time."""
    for source in sources:
        t.advance_watermark(source, MIDNIGHT + timedelta(hours=hours))


def is_held(found: dict[str, str], *names: str) -> bool:
    return all(found.get(name) == "SKIP" for name in names)


def has_moved(found: dict[str, str], *names: str) -> bool:
    return all(found.get(name, "SKIP") != "SKIP" for name in names)


@pytest.fixture
def joined(day: Ticking) -> Ticking:
    """Orders and payments, each with a sum, and a group of watermarks that must agree."""
    t = day.t
    t.sql("CREATE TABLE orders (v INT); INSERT INTO orders VALUES (1)")
    t.sql("CREATE TABLE payments (v INT); INSERT INTO payments VALUES (10)")
    t.create_stream_table("ordered", "SELECT sum(v) AS v FROM orders")
    t.create_stream_table("paid", "SELECT sum(v) AS v FROM payments")
    return day


def test_fuse_and_watermark_must_both_pass_and_the_fuse_is_asked_first(joined: Ticking) -> None:
    day, t = joined, joined.t
    t.create_stream_table(
        "balance", "SELECT o.v - p.v AS v FROM orders o CROSS JOIN payments p", fuse="fixed", fuse_ceiling=5
    )
    t.create_watermark_group("money", ["orders", "payments"])
    t.sql("INSERT INTO orders VALUES (2)")
    assert is_held(day.tick(), "balance", "ordered")
    assert day.why("balance").startswith("watermark"), "a small change only waits for the watermark"
    t.sql("INSERT INTO orders SELECT CAST(id AS INT) FROM range(20)")
    assert is_held(day.tick(), "balance", "ordered")
    assert day.why("balance").startswith("fuse"), "both would hold it back, and the fuse is asked first"
    assert day.why("ordered").startswith("watermark")
    aligned(t, "orders", "payments")
    found = day.tick()
    assert is_held(found, "balance"), "aligned, and blown"
    assert has_moved(found, "ordered")
    aligned(t, "orders", hours=1)
    t.reset_fuse("balance", "apply")
    assert is_held(day.tick(), "balance")
    assert day.why("balance").startswith("watermark"), "the reset is not spent on a tick that was held back"
    aligned(t, "payments", hours=1)
    assert has_moved(day.tick(), "balance")
    t.sql("INSERT INTO orders SELECT CAST(id AS INT) FROM range(20)")
    assert is_held(day.tick(), "balance"), "and guards the next change again"
    assert day.why("balance").startswith("fuse")


def test_fuse_and_diamond_a_blown_member_blocks_the_group(day: Ticking) -> None:
    t = day.t
    diamond(t, fuse="fixed", fuse_ceiling=10)
    t.create_stream_table("best", "SELECT max(v) AS v FROM means")
    before = {name: contents(t, name) for name in (*DIAMOND, "best")}
    t.sql("DELETE FROM orders WHERE v < 30")
    assert is_held(day.tick(), *DIAMOND, "best")
    assert {name: contents(t, name) for name in (*DIAMOND, "best")} == before
    t.reset_fuse("sums", "apply")
    assert has_moved(day.tick(), *DIAMOND)


def test_fuse_and_diamond_a_change_that_is_found_too_large_when_staged_takes_the_group_back(day: Ticking) -> None:
    """One row of the rates is every row of the prices: only the staged change tells, and by then two are staged."""
    t = day.t
    t.sql("CREATE TABLE items (id INT, kind INT); INSERT INTO items SELECT id, id % 2 FROM range(40)")
    t.sql("CREATE TABLE rates (kind INT, rate INT); INSERT INTO rates VALUES (0, 1), (1, 1)")
    t.create_stream_table("kinds", "SELECT kind, max(rate) AS rate FROM rates GROUP BY kind")
    t.create_stream_table("bases", "SELECT kind, count(*) AS n FROM rates GROUP BY kind")
    t.create_stream_table(
        "prices",
        "SELECT i.id, i.id * k.rate * b.n AS price FROM items i JOIN kinds k ON i.kind = k.kind "
        "JOIN bases b ON i.kind = b.kind",
        refresh_mode="DIFFERENTIAL",
        fuse="fixed",
        fuse_ceiling=20,
    )
    before = {name: contents(t, name) for name in ("kinds", "bases", "prices")}
    t.sql("UPDATE rates SET rate = 2 WHERE kind = 1")
    assert is_held(day.tick(), "kinds", "prices")
    assert "fuse" in day.why("prices")
    assert {name: contents(t, name) for name in before} == before
    assert frontier(t, "kinds") == frontier(t, "bases")
    t.reset_fuse("prices", "apply")
    assert has_moved(day.tick(), "kinds", "prices")
    assert frontier(t, "kinds") == frontier(t, "bases")


def test_watermark_and_diamond_one_member_that_waits_holds_all(day: Ticking) -> None:
    """Only the counts read the refunds and their group; sums and means wait with them all the same."""
    t = day.t
    t.sql("CREATE TABLE orders (k INT, v INT); INSERT INTO orders SELECT id % 3, id FROM range(9)")
    t.sql("CREATE TABLE refunds (k INT); CREATE TABLE returns (k INT)")
    t.create_stream_table("sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k")
    t.create_stream_table(
        "counts",
        "SELECT k, count(*) AS n FROM (SELECT k FROM orders UNION ALL SELECT k FROM refunds UNION ALL "
        "SELECT k FROM returns) GROUP BY k",
    )
    t.create_stream_table("means", "SELECT s.k, s.v, c.n FROM sums s JOIN counts c ON s.k = c.k")
    t.create_watermark_group("back", ["refunds", "returns"])
    t.sql("INSERT INTO orders VALUES (1, 100)")
    assert is_held(day.tick(), *DIAMOND)
    assert "watermark" in day.why("sums")
    aligned(t, "refunds", "returns")
    assert has_moved(day.tick(), *DIAMOND)
    assert frontier(t, "sums")["orders"] == frontier(t, "counts")["orders"] == version_of(t, "orders")


def test_hold_back_and_diamond_all_ways_are_held_back_alike(day: Ticking) -> None:
    t = day.t
    diamond(t)
    t.sql("CREATE TABLE payments (k INT)")
    t.create_watermark_group("money", ["orders", "payments"], mode="hold_back")
    aligned(t, "orders", "payments")
    complete = version_of(t, "orders")
    t.sql("INSERT INTO orders VALUES (1, 1)")
    day.tick()
    assert {frontier(t, name)["orders"] for name in ("sums", "counts")} == {complete}
    aligned(t, "orders", "payments", hours=1)
    assert has_moved(day.tick(), *DIAMOND)
    assert {frontier(t, name)["orders"] for name in ("sums", "counts")} == {complete + 1}


def test_watermark_and_cross_source_a_declared_group_waits_for_its_watermarks(joined: Ticking) -> None:
    day, t = joined, joined.t
    t.sql("CREATE TABLE clicks (v INT)")
    t.create_stream_table("clicked", "SELECT count(*) AS n FROM clicks")
    t.create_refresh_group("books", ["ordered", "paid", "clicked"], isolation="REPEATABLE_READ")
    t.create_watermark_group("money", ["orders", "payments"])
    aligned(t, "orders", "payments")
    t.sql("INSERT INTO orders VALUES (2); INSERT INTO clicks VALUES (1)")
    aligned(t, "orders", hours=1)
    assert is_held(day.tick(), "ordered", "clicked"), "clicks have no watermark, and are shown with the others"
    t.sql("INSERT INTO payments VALUES (20)")
    aligned(t, "payments", hours=1)
    assert has_moved(day.tick(), "ordered", "paid", "clicked")
    assert [contents(t, name) for name in ("ordered", "paid", "clicked")] == [[(3,)], [(30,)], [(1,)]]


def test_hold_back_and_cross_source_one_cut_that_is_complete_everywhere(joined: Ticking) -> None:
    day, t = joined, joined.t
    t.create_refresh_group("books", ["ordered", "paid"], isolation="REPEATABLE_READ")
    t.create_watermark_group("money", ["orders", "payments"], mode="hold_back")
    aligned(t, "orders", "payments")
    t.sql("INSERT INTO orders VALUES (2)")
    aligned(t, "orders", hours=2)
    t.sql("INSERT INTO payments VALUES (20)")
    assert not has_moved(day.tick(), "ordered")
    assert contents(t, "ordered") == [(1,)], "orders of two hours that payments have not"
    aligned(t, "payments", hours=2)
    t.sql("INSERT INTO payments VALUES (40)")
    assert has_moved(day.tick(), "ordered", "paid")
    assert (contents(t, "ordered"), contents(t, "paid")) == ([(3,)], [(30,)])


def test_diamond_and_cross_source_are_merged_and_the_declared_isolation_holds(day: Ticking) -> None:
    t = day.t
    diamond(t)
    t.sql("CREATE TABLE payments (v INT); INSERT INTO payments VALUES (10)")
    t.create_stream_table("paid", "SELECT sum(v) AS v FROM payments", fuse="fixed", fuse_ceiling=5)
    t.create_refresh_group("books", ["sums", "paid"], isolation="REPEATABLE_READ")
    t.sql("INSERT INTO orders VALUES (1, 1); INSERT INTO payments SELECT CAST(id AS INT) FROM range(10)")
    assert is_held(day.tick(), *DIAMOND, "paid"), "a fuse beside the diamond holds it through the declared group"
    t.reset_fuse("paid", "apply")
    assert has_moved(day.tick(), *DIAMOND, "paid")
    [job] = [job for job in t.parallel_job_status() if job.status == "SUCCEEDED"][:1]
    assert set(job.members.split(", ")) == {*DIAMOND, "paid"}
    assert frontier(t, "sums") == frontier(t, "counts") == {"orders": version_of(t, "orders")}
    t.drop_refresh_group("books")
    t.sql("INSERT INTO orders VALUES (1, 1); INSERT INTO payments SELECT CAST(id AS INT) FROM range(10)")
    found = day.tick()
    assert has_moved(found, *DIAMOND), "and without the group the fuse holds its own table alone"
    assert is_held(found, "paid")


def test_readers_never_see_half_a_merged_group(day: Ticking) -> None:
    """Sums and counts of the same rows: whoever reads both in one query finds that they fit, at any moment."""
    t = day.t
    t.sql("CREATE TABLE orders (v INT); INSERT INTO orders VALUES (1)")
    t.create_stream_table("total", "SELECT sum(v) AS v FROM orders")
    t.create_stream_table("number", "SELECT count(*) AS n FROM orders")
    t.create_refresh_group("both", ["total", "number"])
    torn: list[object] = []
    seen: set[tuple[int, int]] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            frame = t.sql("SELECT t.v, n.n FROM total t CROSS JOIN number n")
            [(v, n)] = frame.toArrow().to_pandas().itertuples(index=False, name=None)  # type: ignore[union-attr]
            seen.add((v, n))
            if v != n:
                torn.append((v, n))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(3):
            t.sql("INSERT INTO orders VALUES (1)")
            assert has_moved(day.tick(checked=False), "total", "number")
    finally:
        stop.set()
        reader.join()
    assert seen
    assert torn == []


def test_watermark_and_cut_what_comes_during_a_tick_is_for_the_next(joined: Ticking) -> None:
    """Every refresh of a tick reads its sources at the cut, also in mode hold_back, and also further down."""
    day, t = joined, joined.t
    t.create_stream_table("highest", "SELECT max(v) AS v FROM orders")
    t.create_stream_table("doubled", "SELECT 2 * v AS v FROM ordered")
    t.sql("INSERT INTO orders VALUES (2)")
    cut = version_of(t, "orders")
    with written_meanwhile(t, "INSERT INTO orders VALUES (100)"):
        assert has_moved(day.tick(), "ordered", "highest", "doubled")
    assert version_of(t, "orders") == cut + 1
    assert {frontier(t, name)["orders"] for name in ("ordered", "highest")} == {cut}
    assert contents(t, "doubled") == [(6,)]
    t.create_watermark_group("money", ["orders", "payments"], mode="hold_back")
    aligned(t, "orders", "payments")
    t.sql("INSERT INTO orders VALUES (1000)")
    day.tick()
    assert {frontier(t, name)["orders"] for name in ("ordered", "highest")} == {cut + 1}, "the watermark caps the cut"
    assert contents(t, "highest") == [(100,)]


def test_fuse_and_watermark_and_diamond_and_cut_all_at_once(day: Ticking) -> None:
    t = day.t
    diamond(t, fuse="fixed", fuse_ceiling=10)
    t.sql("CREATE TABLE payments (v INT); INSERT INTO payments VALUES (1)")
    t.create_stream_table("paid", "SELECT sum(v) AS v FROM payments")
    t.create_refresh_group("books", ["means", "paid"], isolation="REPEATABLE_READ")
    t.create_watermark_group("money", ["orders", "payments"])
    members = (*DIAMOND, "paid")
    t.gate_source("payments")
    t.sql("DELETE FROM orders WHERE v < 30; INSERT INTO payments VALUES (2)")
    assert is_held(day.tick(), *members)
    assert "is gated" in day.why("paid")
    t.ungate_source("payments")
    assert is_held(day.tick(), *members)
    t.reset_fuse("sums", "apply")
    assert is_held(day.tick(), *members)
    assert day.why("sums").startswith("watermark")
    aligned(t, "orders", "payments")
    with written_meanwhile(t, "INSERT INTO payments VALUES (4)"):
        assert has_moved(day.tick(), *members)
    assert contents(t, "paid") == [(3,)]
