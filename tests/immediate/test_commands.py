"""IMMEDIATE stream tables from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import Cli
from tests.immediate.conftest import Session
from trickle.api import Trickle


def test_created_moved_and_dropped(
    t: Trickle, shop: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(tmp_path / "warehouse", capsys)
    query = "SELECT customer, COUNT(*) AS n FROM shop.orders GROUP BY customer"
    made = cli("create", "counts", query, "--refresh-mode", "immediate")
    assert (made.code, "mode IMMEDIATE" in made.out) == (0, True)
    assert (
        cli("create", "loud", "SELECT upper(region) AS r FROM shop.customers", "--refresh-mode", "IMMEDIATE").code != 0
    )
    shop.execute("INSERT INTO orders VALUES (100, 77, 1)")
    assert "77" in cli("sql", "SELECT n, customer FROM counts WHERE customer = 77").out
    assert "IMMEDIATE" in cli("sources", "--health").out
    assert "mode FULL" in cli("alter", "counts", "--refresh-mode", "FULL").out
    assert cli("drop", "counts").code == 0
    assert t.status() == []
