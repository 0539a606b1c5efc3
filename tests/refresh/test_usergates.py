"""Gates of one's own: predicates and functions over the staged change."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.errors import DuplicateName, Gated, InvalidOption, ParseError, TrickleError
from trickle.testing import check


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bo', 20)")
    query = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    t.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    return t


def held(t: Trickle) -> str:
    before = contents(t, "s")
    with pytest.raises(Gated) as caught:
        t.refresh_stream_table("s")
    assert contents(t, "s") == before
    assert t.refresh_history("s")[0].status == "SKIPPED"
    return str(caught.value.detail)


def test_a_predicate_over_the_rows_that_come(shop: Trickle) -> None:
    t = shop
    t.register_gate("named", "SELECT count(*) = 0 FROM inserted WHERE customer IS NULL")
    t.sql("INSERT INTO orders VALUES (3, NULL, 5)")
    assert "named" in held(t)
    t.sql("DELETE FROM orders WHERE customer IS NULL; INSERT INTO orders VALUES (4, 'cy', 1)")
    assert t.refresh_stream_table("s").rows_inserted == 1
    check(t)


def test_a_predicate_reads_what_goes_what_changes_and_the_sources(shop: Trickle) -> None:
    t = shop
    t.register_gate(
        "steady",
        "SELECT (SELECT count(*) FROM deleted) <= 1 AND (SELECT sum(change) FROM delta) >= 0"
        " AND (SELECT count(*) FROM orders) > 2",
        tables="s",
    )
    t.sql("UPDATE orders SET amount = 11 WHERE id = 1")
    held(t)
    t.sql("INSERT INTO orders VALUES (3, 'cy', 1)")
    t.refresh_stream_table("s")
    check(t)


def test_a_function_is_handed_the_change(shop: Trickle) -> None:
    t = shop
    seen: list[tuple[str, list[tuple[str, int, int]]]] = []

    def look(name: str, change: DataFrame) -> tuple[bool, str]:
        seen.append((name, sorted(tuple(row) for row in change.collect())))
        return len(seen) > 1, "not the first time"

    t.register_gate("second_look", look)
    t.sql("INSERT INTO orders VALUES (3, 'cy', 1)")
    assert "not the first time" in held(t)
    t.refresh_stream_table("s")
    check(t)
    assert seen[0] == ("s", [("cy", 1, 1)])


def test_a_gate_that_fails_holds_the_refresh_back_and_says_why(shop: Trickle) -> None:
    t = shop

    def broken(name: str, change: DataFrame) -> bool:
        raise RuntimeError("no answer")

    t.register_gate("broken", broken, tables=["s"])
    t.sql("INSERT INTO orders VALUES (3, 'cy', 1)")
    assert "RuntimeError: no answer" in held(t)
    t.drop_gate("broken")
    t.register_gate("many", "SELECT id = 1 FROM orders")
    assert "not one value" in held(t)
    t.drop_gate("many")
    t.register_gate("nowhere", "SELECT count(*) = 0 FROM nowhere")
    assert "nowhere" in held(t)


def test_what_makes_no_sense_is_refused(shop: Trickle) -> None:
    t = shop
    with pytest.raises(ParseError):
        t.register_gate("bad", "SELEC 1")
    with pytest.raises(InvalidOption):
        t.register_gate("bad", 5)  # type: ignore[arg-type]
    with pytest.raises(TrickleError):
        t.register_gate("bad", "SELECT true", tables=["orders"])
    t.register_gate("good", "SELECT true")
    with pytest.raises(DuplicateName):
        t.register_gate("GOOD", "SELECT true")
    with pytest.raises(TrickleError, match="god"):
        t.drop_gate("god")
    assert [(row.name, row.kind, row.tables) for row in t.gates()] == [("good", "sql", None)]
