"""The fuse: a change that is far too large is not applied until somebody has looked at it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenarios.story import contents, state
from trickle.api import Trickle
from trickle.errors import Gated, InvalidOption, UserError
from trickle.testing import check

SUMMARY = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO orders SELECT CAST(id AS INT), concat('c', id % 5), 1 FROM range(200)")
    return t


def guarded(t: Trickle, mode: str = "DIFFERENTIAL", **fuse: Any) -> None:
    t.create_stream_table("summary", SUMMARY, refresh_mode=mode, **fuse)


def ordinary_days(t: Trickle, days: int = 5) -> None:
    for day in range(days):
        t.sql(f"INSERT INTO orders SELECT CAST(id AS INT), 'c1', 1 FROM range({1000 + 10 * day}, {1003 + 10 * day})")
        t.sql(f"DELETE FROM orders WHERE id = {day}")
        t.refresh_stream_table("summary")
        check(t)


def held(t: Trickle, name: str = "summary") -> Gated:
    with pytest.raises(Gated) as caught:
        t.refresh_stream_table(name)
    return caught.value


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL", "AUTO"])
def test_a_mass_delete_blows_it_in_every_mode(shop: Trickle, mode: str) -> None:
    t = shop
    guarded(t, mode, fuse="fixed", fuse_ceiling=50)
    before, version = contents(t, "summary"), state(t, "summary").version
    t.sql("DELETE FROM orders")
    error = held(t)
    assert "200 changed rows exceeds ceiling 50" in str(error)
    assert "inspect_fuse('summary')" in str(error.hint)
    assert contents(t, "summary") == before
    assert state(t, "summary").version == version
    [row] = t.fuse_status()
    assert (row.name, row.mode, row.state, row.last_delta) == ("summary", "fixed", "BLOWN", 200)
    skipped = t.refresh_history("summary")[0]
    assert (skipped.action, skipped.status) == ("SKIP", "SKIPPED")
    assert json.loads(skipped.details)["verdict"]["decision"] == "BLOCK"


def test_the_alert_tells_what_the_seed_asks_for(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="adaptive")
    ordinary_days(t)
    t.sql("DELETE FROM orders WHERE id < 150")
    held(t)
    held(t)
    [alert] = [alert for alert in t.alerts() if alert.event == "fuse_blown"]
    payload = json.loads(alert.payload)
    assert (alert.severity, alert.name) == ("CRITICAL", "summary")
    assert (payload["event"], payload["schema"], payload["st_name"]) == ("fuse_blown", "default", "summary")
    assert payload["delta_row_count"] == 145
    assert payload["ceiling"] is None
    assert payload["computed_threshold"] < 145
    assert payload["baseline_mean"] == 1
    assert "exceeds adaptive threshold" in payload["blow_reason"]


def test_insertions_and_deletions_have_baselines_of_their_own(shop: Trickle) -> None:
    """Ten deletions are as unusual here as ten insertions are not."""
    t = shop
    guarded(t, fuse="adaptive")
    for day in range(6):
        t.sql(f"INSERT INTO orders SELECT CAST(id AS INT), 'c1', 1 FROM range({1000 + day * 100}, {1020 + day * 100})")
        t.refresh_stream_table("summary")
    t.sql("INSERT INTO orders SELECT CAST(id AS INT), 'c2', 1 FROM range(5000, 5022)")
    assert t.refresh_stream_table("summary").rows_inserted
    t.sql("DELETE FROM orders WHERE id < 20")
    assert "deletions" in str(held(t).detail)


def test_ordinary_changes_do_not_blow_it_and_read_nothing_for_it(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="adaptive")
    ordinary_days(t, 7)
    assert t.fuse_status()[0].state == "ARMED"
    assert t.fuse_status()[0].deletions_mean == 1.0


def test_what_cancels_out_is_not_counted(shop: Trickle) -> None:
    """The log says that whole files went and came; the net change is one row."""
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("CREATE TABLE copy (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO copy SELECT * FROM orders")
    t.sql("INSERT OVERWRITE orders SELECT id, customer, CASE WHEN id = 7 THEN 5 ELSE amount END FROM copy")
    t.refresh_stream_table("summary")
    check(t)


def test_before_there_is_a_baseline_the_cold_start_ceiling_counts(shop: Trickle) -> None:
    t = shop
    t.sql("SET trickle.fuse_cold_start_ceiling = 100")
    guarded(t, fuse="adaptive")
    t.sql("DELETE FROM orders WHERE id < 150")
    assert "cold-start ceiling 100" in str(held(t).detail)


def test_fuse_default_guards_tables_that_say_nothing(shop: Trickle) -> None:
    t = shop
    t.sql("SET trickle.fuse_default = 'adaptive'")
    t.sql("SET trickle.fuse_cold_start_ceiling = 10")
    guarded(t)
    t.create_stream_table("unguarded", SUMMARY, fuse="none")
    t.sql("DELETE FROM orders WHERE id < 20")
    held(t)
    t.refresh_stream_table("unguarded")
    check(t)


def test_apply_lets_the_changes_through_once(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("DELETE FROM orders WHERE id < 100")
    held(t)
    t.reset_fuse("summary", "apply")
    assert t.refresh_stream_table("summary").action == "DIFFERENTIAL"
    check(t)
    t.sql("DELETE FROM orders")
    held(t)


def test_reinitialize_computes_the_table_from_the_repaired_source(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("DELETE FROM orders")
    held(t)
    t.sql("INSERT INTO orders SELECT CAST(id AS INT), 'repaired', 2 FROM range(300)")
    t.sql("CALL trickle.reset_fuse('summary', action => 'reinitialize')")
    assert t.refresh_stream_table("summary").action == "REINITIALIZE"
    check(t)
    assert contents(t, "summary") == [("repaired", 600)]


def test_skip_changes_goes_on_after_what_was_undone_at_the_source(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("CREATE TABLE copy (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO copy SELECT * FROM orders")
    before = contents(t, "summary")
    t.sql("DELETE FROM orders")
    held(t)
    t.sql("INSERT INTO orders SELECT * FROM copy")
    t.reset_fuse("summary", "skip_changes")
    assert t.refresh_stream_table("summary").action == "NO_DATA"
    assert contents(t, "summary") == before
    check(t)
    t.sql("INSERT INTO orders VALUES (9999, 'c1', 1)")
    assert t.refresh_stream_table("summary").action == "DIFFERENTIAL"
    check(t)


def test_force_lets_them_through_and_arms_it_again(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("DELETE FROM orders WHERE id < 100")
    held(t)
    t.refresh_stream_table("summary", force=True)
    check(t)
    assert t.fuse_status()[0].state == "ARMED"


def test_reset_has_no_default_and_needs_a_blown_fuse(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    with pytest.raises(InvalidOption, match="cannot be reset") as caught:
        t.reset_fuse("summary")
    assert all(action in str(caught.value) for action in ("apply", "reinitialize", "skip_changes"))
    with pytest.raises(UserError, match="not blown"):
        t.reset_fuse("summary", "apply")


def test_inspect_shows_what_would_happen_and_changes_nothing(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.create_stream_table("board", "SELECT count(*) AS customers FROM summary")
    before, version = contents(t, "summary"), state(t, "summary").version
    t.sql("DELETE FROM orders WHERE customer <> 'c4'")
    held(t)
    found = t.inspect_fuse("summary", sample=3)
    assert (found.state, found.inserted, found.deleted, found.rows_before) == ("BLOWN", 0, 4, 5)
    assert (found.waiting["orders"].inserted, found.waiting["orders"].deleted) == (0, 160)
    assert [row.operation for row in found.sample] == ["delete"] * 3
    assert list(found.downstream) == ["board"]
    assert (contents(t, "summary"), state(t, "summary").version) == (before, version)
    held(t)


def test_changes_keep_accumulating_behind_a_blown_fuse(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_ceiling=50)
    t.sql("DELETE FROM orders WHERE id < 100")
    held(t)
    t.sql("INSERT INTO orders VALUES (500, 'late', 7)")
    t.reset_fuse("summary", "apply")
    t.refresh_stream_table("summary")
    check(t)
    assert ("late", 7) in contents(t, "summary")


def test_a_source_fuse_guards_everything_that_reads_it(shop: Trickle) -> None:
    t = shop
    guarded(t)
    t.create_stream_table("totals", "SELECT sum(total) AS total FROM summary")
    t.create_stream_table("count", "SELECT count(*) AS n FROM orders")
    t.set_source_fuse("orders", "fixed", fuse_ceiling=50)
    t.sql("DELETE FROM orders WHERE id < 100")
    for name in ("summary", "count"):
        assert "orders" in str(held(t, name).detail)
    assert t.refresh_stream_table("totals").action == "NO_DATA"
    found = t.inspect_fuse("orders")
    assert (found.deleted, sorted(found.downstream)) == (100, ["count", "summary", "totals"])
    t.reset_fuse("orders", "apply")
    for name in ("summary", "count", "totals"):
        t.refresh_stream_table(name)
    check(t)


def test_few_rows_of_a_source_that_change_much_of_the_table_blow_it(t: Trickle) -> None:
    """The staged change counts too: one row of the rates is every row of the prices."""
    t.sql("CREATE TABLE items (id INT); INSERT INTO items SELECT CAST(id AS INT) FROM range(300)")
    t.sql("CREATE TABLE rate (factor INT); INSERT INTO rate VALUES (1)")
    t.create_stream_table(
        "prices",
        "SELECT i.id, i.id * r.factor AS price FROM items i CROSS JOIN rate r",
        refresh_mode="DIFFERENTIAL",
        fuse="fixed",
        fuse_ceiling=100,
    )
    before = contents(t, "prices")
    t.sql("UPDATE rate SET factor = 2")
    assert "598 changed rows" in str(held(t, "prices").detail)
    assert contents(t, "prices") == before
    assert t.refresh_history("prices")[0].status == "SKIPPED"
    t.reset_fuse("prices", "apply")
    t.refresh_stream_table("prices")
    check(t)


def test_a_ratio_is_a_share_of_the_source(shop: Trickle) -> None:
    t = shop
    guarded(t, fuse="fixed", fuse_max_ratio=0.5)
    t.sql("DELETE FROM orders WHERE id < 90")
    t.refresh_stream_table("summary")
    check(t)
    t.sql("DELETE FROM orders WHERE id < 150")
    assert "55%" in str(held(t).detail)
