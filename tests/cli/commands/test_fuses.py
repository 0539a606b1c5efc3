from __future__ import annotations

from tests.cli.runner import Cli


def test_a_fuse_blows_is_looked_at_and_put_back(shop: Cli) -> None:
    shop("alter", "per_customer", "-o", "fuse=fixed", "-o", "fuse_ceiling=2")
    assert [(row["name"], row["state"]) for row in shop.document("fuse", "status")] == [("per_customer", "ARMED")]
    shop("sql", "DELETE FROM orders")

    held = shop("refresh", "per_customer", "--json")
    assert (held.code, held.error["code"]) == (3, "GATED")
    assert "BLOWN" in shop("fuse", "status").out
    rows = {row["name"]: row for row in shop.document("status")}
    assert rows["per_customer"]["fuse_state"] == "BLOWN"
    assert rows["per_customer"]["held_back"] == "fuse: delta of 3 changed rows exceeds ceiling 2"
    assert (rows["grand"]["fuse_state"], rows["grand"]["held_back"]) == (None, None)

    seen = shop.document("fuse", "inspect", "per_customer", "--sample", "1")
    assert (seen["waiting"], seen["deleted"]) == ({"orders": {"inserted": 0, "deleted": 3}}, 3)
    assert (len(seen["sample"]), seen["downstream"]) == (1, ["grand"])
    told = shop("fuse", "inspect", "per_customer").out
    assert "waits at orders: 0 insertions, 3 deletions\nwould insert 0 rows and delete 3; it has 3 now\n" in told

    assert shop("fuse", "reset", "per_customer", "--action", "apply").out == (
        "fuse of per_customer is ARMED again: APPLY\n"
    )
    assert shop("refresh", "per_customer").code == 0
    assert shop.document("table", "per_customer") == []


def test_what_becomes_of_the_changes_must_be_said(cli: Cli) -> None:
    asked = cli("fuse", "reset", "totals")
    assert asked.code == 2
    assert all(action in asked.err for action in ("apply", "reinitialize", "skip_changes"))
    assert asked.err.splitlines()[-1].startswith("hint: trickle fuse reset totals --action apply")


def test_a_source_has_a_fuse_of_its_own(shop: Cli) -> None:
    assert shop("fuse", "set", "orders", "fixed", "--ceiling", "100").out == "fuse of orders: fixed, ARMED\n"
    [row] = shop.document("fuse", "status")
    assert (row["name"], row["kind"], row["ceiling"]) == ("orders", "TABLE", 100)
    assert shop("fuse", "set", "orders", "none").code == 0
    assert shop("fuse", "status").out == "no fuses in use: trickle alter NAME -o fuse=adaptive\n"
    assert shop("fuse", "set", "grand", "fixed").code == 2
