from __future__ import annotations

from tests.cli.runner import Cli


def test_status_and_history_tell_what_refreshes_did(shop: Cli) -> None:
    shop("sql", "INSERT INTO orders VALUES (4, 'ada', 2.5)")
    done = shop.document("refresh", "--all")
    assert [(row["name"], row["action"]) for row in done] == [("per_customer", "FULL"), ("grand", "FULL")]
    assert shop.document("table", "grand") == [{"total": "19.00"}]

    assert {row["name"]: row["status"] for row in shop.document("status")} == {
        "grand": "ACTIVE",
        "per_customer": "ACTIVE",
    }
    newest = shop.document("history", "grand", "--limit", "1")
    assert [(row["action"], row["initiated_by"], row["version_after"]) for row in newest] == [("FULL", "MANUAL", 2)]
    assert len(shop.document("history")) == 4
    assert "per_customer" in shop("history").out
    assert "ACTIVE" in shop("status").out


def test_an_idle_refresh_can_be_forced(shop: Cli) -> None:
    assert shop.document("refresh", "grand")[0]["action"] == "NO_DATA"
    assert shop.document("refresh", "grand", "--force")[0]["action"] == "FULL"


def test_a_failed_refresh_is_shown_and_gives_its_exit_code(shop: Cli) -> None:
    shop("create", "share", "SELECT 1 / (amount - 7) AS x FROM orders")
    shop("sql", "INSERT INTO orders VALUES (9, 'eve', 7)")
    failed = shop("refresh", "--all")
    assert failed.code != 0
    assert "FAILED" in failed.out
    assert "per_customer" in failed.out
    assert failed.err.startswith("error: ")


def test_which_stream_tables_must_be_said(cli: Cli) -> None:
    for line in (["refresh"], ["refresh", "x", "--all"]):
        ran = cli(*line)
        assert ran.code == 2
        assert ran.err.splitlines()[-1] == "hint: trickle refresh NAME ..., or trickle refresh --all"


def test_an_empty_warehouse(cli: Cli) -> None:
    assert cli("refresh", "--all").out == 'no stream tables yet: trickle create NAME "SELECT ..."\n'
    assert cli.document("refresh", "--all") == []
    assert cli("status").out == 'no stream tables yet: trickle create NAME "SELECT ..."\n'
    assert cli("history").out == "no refreshes yet\n"
    assert cli("alerts").out == "no alerts\n"
    assert cli.document("alerts") == []
