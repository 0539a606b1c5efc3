from __future__ import annotations

import pytest

from tests.cli.runner import Cli


def test_a_source_is_gated_while_it_is_loaded(shop: Cli) -> None:
    assert shop("source", "status").out == "no source was ever gated\n"
    gated = shop.document("source", "gate", "orders", "--by", "etl", "--reason", "nightly load")
    assert (gated["gated"], gated["gated_by"], gated["reason"]) == (True, "etl", "nightly load")
    shop("sql", "INSERT INTO orders VALUES (4, 'eve', 1)")
    assert shop("refresh", "per_customer", "--json").error["code"] == "GATED"
    assert "etl" in shop("source", "status").out
    assert shop.document("source", "status", "PAID") == []

    assert shop("source", "ungate", "orders").out == "source orders is not gated\n"
    assert [row["gated"] for row in shop.document("source", "status", "Orders")] == [False]
    assert shop("refresh", "per_customer").code == 0


def test_who_gates_is_known_without_being_said(shop: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert shop("source", "gate", "orders").out == "source orders is gated by ada\n"


def test_watermarks_and_their_groups(shop: Cli) -> None:
    shop("sql", "CREATE TABLE payments (id BIGINT)")
    assert shop("watermark", "list").out.startswith("no watermarks yet")
    assert shop("watermark", "status").out == shop("watermark", "groups").out
    made = shop("watermark", "create-group", "sales", "orders", "payments", "--tolerance", "1h")
    assert made.out == "watermark group sales created: orders, payments, mode gate\n"
    assert shop.document("watermark", "groups")[0]["tolerance_seconds"] == 3600

    advanced = shop("watermark", "advance", "orders", "2026-01-31T00:00:00Z")
    assert advanced.out == "orders is complete up to 2026-01-31T00:00:00+00:00\n"
    assert [row["aligned"] for row in shop.document("watermark", "status")] == [False]
    assert "1 of 2" in shop("watermark", "status").out
    shop("watermark", "advance", "payments", "2026-01-31T00:30:00Z", "--by", "loader")
    assert [row["aligned"] for row in shop.document("watermark", "status")] == [True]
    assert {row["source"]: row["advanced_by"] for row in shop.document("watermark", "list")}["payments"] == "loader"

    assert shop("watermark", "drop-group", "sales").out == "dropped watermark group sales\n"
    assert shop.document("watermark", "groups") == []


def test_a_time_without_a_zone_is_refused(shop: Cli) -> None:
    for time in ("yesterday", "2026-01-31T00:00:00"):
        assert shop("watermark", "advance", "orders", time).code == 2
