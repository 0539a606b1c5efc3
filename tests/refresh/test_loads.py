"""What loaders say about sources: being loaded, complete up to a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.errors import Gated, InvalidOption, UnknownTable, UserError, WrongKind
from trickle.testing import check

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT); INSERT INTO orders VALUES (1)")
    t.sql("CREATE TABLE lines (id INT, n INT); INSERT INTO lines VALUES (1, 1)")
    t.create_stream_table("s", "SELECT o.id, l.n FROM orders o JOIN lines l ON l.id = o.id")
    t.create_stream_table("top", "SELECT count(*) AS n FROM s")
    return t


def test_a_gated_source_holds_everything_below_it_and_one_refresh_follows(shop: Trickle) -> None:
    t = shop
    first = t.gate_source("orders", by="nightly", reason="load")
    again = t.gate_source("orders", by="somebody", reason="else")
    assert (again.gated_at, again.gated_by) == (first.gated_at, "nightly")
    t.sql("INSERT INTO orders VALUES (2)")
    t.sql("INSERT INTO lines VALUES (2, 1)")
    with pytest.raises(Gated, match="source gate") as caught:
        t.refresh_stream_table("s")
    assert "orders is gated by nightly" in str(caught.value.detail)
    [row] = t.bootstrap_gate_status()
    assert (row.source, row.waiting) == ("orders", "s, top")
    assert t.ungate_source("orders").gated is False
    assert t.ungate_source("orders").gated is False
    assert t.bootstrap_gate_status() == []
    assert t.refresh_stream_table("s").rows_inserted == 1
    check(t)


def test_force_goes_past_a_source_gate(shop: Trickle) -> None:
    shop.gate_source("orders")
    shop.sql("INSERT INTO lines VALUES (1, 2)")
    shop.refresh_stream_table("s", force=True)
    check(shop)


def test_a_watermark_never_goes_back(shop: Trickle) -> None:
    t = shop
    t.advance_watermark("orders", NOON)
    t.advance_watermark("orders", NOON)
    with pytest.raises(InvalidOption):
        t.advance_watermark("orders", NOON - timedelta(seconds=1))
    t.sql("CALL trickle.advance_watermark('orders', '2026-05-01T13:00:00+00:00')")
    assert [(row.source, row.watermark) for row in t.watermarks()] == [("orders", NOON + timedelta(hours=1))]
    with pytest.raises(InvalidOption, match="time zone"):
        t.advance_watermark("orders", datetime(2027, 1, 1))
    with pytest.raises(InvalidOption, match="not a time"):
        t.advance_watermark("orders", "tomorrow")
    with pytest.raises(WrongKind, match="nobody loads"):
        t.advance_watermark("s", NOON)


def test_a_group_waits_until_its_sources_are_complete_together(shop: Trickle) -> None:
    t = shop
    t.create_watermark_group("nightly", ["orders", "lines"], tolerance="5m")
    t.sql("INSERT INTO orders VALUES (2)")
    with pytest.raises(Gated, match="watermark") as caught:
        t.refresh_stream_table("s")
    assert "no watermark yet" in str(caught.value.detail)
    t.advance_watermark("orders", NOON)
    t.advance_watermark("lines", NOON - timedelta(minutes=10))
    [row] = t.watermark_status()
    assert (row.aligned, row.lag_seconds, row.sources_with_watermark) == (False, 600.0, 2)
    with pytest.raises(Gated, match="watermark"):
        t.refresh_stream_table("s")
    t.sql("INSERT INTO lines VALUES (2, 5)")
    t.advance_watermark("lines", NOON - timedelta(minutes=5))
    assert t.watermark_status()[0].aligned
    assert t.refresh_stream_table("s").rows_inserted == 1
    check(t)


def test_hold_back_leaves_out_what_came_after_the_watermark(shop: Trickle) -> None:
    t = shop
    t.create_watermark_group("held", "orders, lines", mode="hold_back")
    t.sql("INSERT INTO orders VALUES (2); INSERT INTO lines VALUES (2, 2)")
    t.advance_watermark("orders", NOON)
    t.advance_watermark("lines", NOON)
    t.sql("INSERT INTO orders VALUES (3); INSERT INTO lines VALUES (3, 3)")
    t.refresh_stream_table("s")
    check(t)
    assert contents(t, "s") == [(1, 1), (2, 2)]
    t.advance_watermark("orders", NOON + timedelta(hours=1))
    assert t.refresh_stream_table("s").action == "NO_DATA"
    t.advance_watermark("lines", NOON + timedelta(hours=1))
    t.refresh_stream_table("s")
    check(t)
    assert contents(t, "s") == [(1, 1), (2, 2), (3, 3)]
    t.drop_watermark_group("held")
    t.sql("INSERT INTO orders VALUES (4); INSERT INTO lines VALUES (4, 4)")
    t.refresh_stream_table("s")
    assert (4, 4) in contents(t, "s")


@pytest.mark.parametrize(
    "sources, tolerance, mode",
    [
        (["orders"], "1m", "gate"),
        (["orders", "lines"], "soon", "gate"),
        (["orders", "lines"], -1.0, "gate"),
        (["orders", "lines"], "1m", "wait"),
        (["orders", "s"], "1m", "gate"),
    ],
)
def test_groups_that_make_no_sense_are_refused(
    shop: Trickle, sources: list[str], tolerance: str | float, mode: str
) -> None:
    with pytest.raises(UserError):
        shop.create_watermark_group("g", sources, tolerance=tolerance, mode=mode)
    assert shop.watermark_groups() == []


def test_unknown_names_are_told(shop: Trickle) -> None:
    for ask in (shop.gate_source, shop.ungate_source):
        with pytest.raises(UnknownTable, match="ordres"):
            ask("ordres")
    with pytest.raises(UnknownTable):
        shop.create_watermark_group("g", ["orders", "nobody"])
