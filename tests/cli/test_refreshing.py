from __future__ import annotations

from tests.scenarios.fixtures import t as t
from trickle.api import Trickle
from trickle.cli.refreshing import refresh_in_order
from trickle.errors import UnknownTable


def build(t: Trickle) -> None:
    """Two lines of stream tables on one source: ``b`` reads ``z``, and ``c`` stands alone."""
    t.sql(
        """
        CREATE TABLE a (n INT);
        CREATE STREAM TABLE z AS SELECT n, 10 / n AS share FROM a;
        CREATE VIEW v AS SELECT * FROM z;
        CREATE STREAM TABLE b AS SELECT COUNT(*) AS many FROM v;
        CREATE STREAM TABLE c AS SELECT MAX(n) AS top FROM a;
        """
    )


def actions(t: Trickle, names: list[str] | None = None) -> list[tuple[str, str]]:
    outcomes, error = refresh_in_order(t, names, force=False)
    assert error is None
    return [(outcome.name, outcome.action) for outcome in outcomes]


def test_each_comes_after_what_it_reads(t: Trickle) -> None:
    build(t)
    t.sql("INSERT INTO a VALUES (5)")
    assert actions(t, ["b", "z"]) == [("z", "FULL"), ("b", "FULL")]
    assert sorted(actions(t)) == [("b", "NO_DATA"), ("c", "FULL"), ("z", "NO_DATA")]


def test_what_stands_on_a_failed_one_waits_and_the_rest_goes_on(t: Trickle) -> None:
    build(t)
    t.sql("INSERT INTO a VALUES (0)")
    outcomes, error = refresh_in_order(t, None, force=False)
    assert error is not None
    assert {outcome.name: outcome.action for outcome in outcomes} == {"z": "FAILED", "b": "SKIP", "c": "FULL"}


def test_all_leaves_out_the_suspended(t: Trickle) -> None:
    build(t)
    t.suspend_stream_table("c")
    assert sorted(name for name, _ in actions(t)) == ["b", "z"]


def test_a_name_that_is_not_there_is_an_error(t: Trickle) -> None:
    outcomes, error = refresh_in_order(t, ["nope"], force=False)
    assert isinstance(error, UnknownTable)
    assert [outcome.action for outcome in outcomes] == ["FAILED"]
