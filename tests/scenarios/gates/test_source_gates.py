"""Source gates through ticks: a load shows when it is done, and as one refresh."""

from __future__ import annotations

from tests.scenarios.gates.ticking import Ticking
from tests.scenarios.story import contents, state


def shop(day: Ticking) -> None:
    """Orders and prices; a sum of each, a sum of the sums, and a list of prices."""
    t = day.t
    t.sql("CREATE TABLE orders (v INT); INSERT INTO orders VALUES (1)")
    t.sql("CREATE TABLE prices (v INT); INSERT INTO prices VALUES (10)")
    t.create_stream_table("ordered", "SELECT sum(v) AS v FROM orders")
    t.create_stream_table("priced", "SELECT sum(v) AS v FROM prices")
    t.create_stream_table("both", "SELECT o.v + p.v AS v FROM ordered o CROSS JOIN priced p")


def load(day: Ticking, source: str, *values: int) -> dict[str, str]:
    """Part of a load, and the tick after it."""
    day.t.sql(f"INSERT INTO {source} VALUES {', '.join(f'({value})' for value in values)}")
    return day.tick()


def test_one_clean_refresh_after_a_load(day: Ticking) -> None:
    t = day.t
    shop(day)
    t.gate_source("orders", by="etl", reason="backfill of January")
    for value in (2, 3, 4):
        assert load(day, "orders", value) == {"ordered": "SKIP", "both": "SKIP"}
    assert contents(t, "ordered") == [(1,)]
    assert "source orders is gated by etl" in day.why("ordered")
    assert "(backfill of January)" in day.why("ordered")
    assert len([row for row in t.refresh_history("ordered") if row.action == "SKIP"]) == 1
    t.ungate_source("orders")
    assert set(day.tick()) == {"ordered", "both"}
    assert len(day.computed("ordered")) == 1
    assert contents(t, "both") == [(20,)]
    assert day.tick() == {}


def test_the_rest_of_the_graph_goes_on(day: Ticking) -> None:
    t = day.t
    shop(day)
    t.gate_source("orders")
    t.sql("INSERT INTO orders VALUES (2)")
    found = load(day, "prices", 20)
    assert found["priced"] != "SKIP"
    assert (found["ordered"], found["both"]) == ("SKIP", "SKIP")
    assert contents(t, "both") == [(11,)], "it would show new prices with old orders"
    [row] = t.bootstrap_gate_status()
    assert (row.source, row.waiting) == ("orders", "both, ordered")
    t.ungate_source("orders")
    day.tick()
    assert contents(t, "both") == [(33,)]


def test_loads_that_finish_together(day: Ticking) -> None:
    """Two sources are gated; the table that reads both waits for the second to be done."""
    t = day.t
    shop(day)
    for source in ("orders", "prices"):
        t.gate_source(source)
    t.sql("INSERT INTO orders VALUES (2); INSERT INTO prices VALUES (20)")
    assert set(day.tick().values()) == {"SKIP"}
    t.ungate_source("orders")
    found = day.tick()
    assert found["ordered"] != "SKIP"
    assert (found["priced"], found["both"]) == ("SKIP", "SKIP")
    t.ungate_source("prices")
    day.tick()
    assert contents(t, "both") == [(33,)]


def test_a_table_made_during_the_load_is_filled_after_it(day: Ticking) -> None:
    t = day.t
    t.sql("CREATE TABLE orders (v INT)")
    t.gate_source("orders")
    t.create_stream_table("ordered", "SELECT sum(v) AS v FROM orders", initialize=False)
    assert load(day, "orders", 1, 2) == {"ordered": "SKIP"}
    assert not state(t, "ordered").populated
    t.ungate_source("orders")
    assert set(day.tick()) == {"ordered"}
    assert contents(t, "ordered") == [(3,)]


def test_gating_twice_is_gating_once(day: Ticking) -> None:
    t = day.t
    shop(day)
    first = t.gate_source("orders", by="etl")
    day.tick()
    assert t.gate_source("orders", by="another").gated_at == first.gated_at
    t.ungate_source("orders")
    t.ungate_source("orders")
    assert [row.gated for row in t.source_gates()] == [False]
