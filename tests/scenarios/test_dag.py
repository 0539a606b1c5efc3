"""Chains, diamonds and units of stream tables, each refresh compared with the oracle."""

from __future__ import annotations

import pytest

from tests.scenarios.story import contents, differences, refreshed, state, version_of
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.errors import QueryError
from trickle.refresh.execute import refresh
from trickle.testing import check


def unit(t: Trickle, *names: str) -> list[str]:
    """Refresh stream tables as one unit, compared with the oracle; the actions by order of refresh."""
    results = refresh(t.warehouse, [TableName.of([name]) for name in names])
    check(t)
    return [f"{result.name} {result.action}" for result in results]


def test_a_chain_of_five(t: Trickle) -> None:
    t.sql("CREATE TABLE sales (shop STRING, item STRING, n INT)")
    t.sql("INSERT INTO sales VALUES ('a', 'pen', 1), ('a', 'ink', 2), ('b', 'pen', 3), ('b', NULL, 4)")
    t.sql("""
        CREATE STREAM TABLE clean AS SELECT shop, coalesce(item, 'other') AS item, n FROM sales;
        CREATE STREAM TABLE by_item AS SELECT shop, item, sum(n) AS n FROM clean GROUP BY shop, item;
        CREATE STREAM TABLE by_shop AS SELECT shop, sum(n) AS n, count(*) AS items FROM by_item GROUP BY shop;
        CREATE STREAM TABLE ranked AS SELECT shop, n, rank() OVER (ORDER BY n DESC) AS place FROM by_shop;
        CREATE STREAM TABLE best AS SELECT shop FROM ranked WHERE place = 1
    """)
    chain = ("clean", "by_item", "by_shop", "ranked", "best")
    check(t)
    assert contents(t, "best") == [("b",)]
    t.sql("UPDATE sales SET n = 40 WHERE item = 'pen' AND shop = 'a'; DELETE FROM sales WHERE item IS NULL")
    refreshed(t, *chain)
    assert contents(t, "best") == [("a",)]
    # A change that the middle of the chain absorbs goes no further.
    t.sql("UPDATE sales SET item = 'pencil' WHERE item = 'pen'")
    actions = {}
    for name in chain:
        actions[name] = refreshed(t, name).action
    assert actions == {"clean": "FULL", "by_item": "FULL", "by_shop": "FULL", "ranked": "NO_DATA", "best": "NO_DATA"}


def test_a_chain_refreshed_from_its_end_sees_older_data_and_says_so(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.sql("CREATE STREAM TABLE low AS SELECT x FROM a; CREATE STREAM TABLE high AS SELECT sum(x) AS x FROM low")
    t.sql("INSERT INTO a VALUES (10)")
    assert refreshed(t, "high").action == "NO_DATA"
    assert contents(t, "high") == [(1,)]
    refreshed(t, "low", "high")
    assert contents(t, "high") == [(11,)]


@pytest.fixture
def diamond(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE base (k INT, v INT); INSERT INTO base VALUES (1, 1), (1, 2), (2, 5)")
    t.sql("""
        CREATE STREAM TABLE sums AS SELECT k, sum(v) AS total FROM base GROUP BY k;
        CREATE STREAM TABLE counts AS SELECT k, count(*) AS n FROM base GROUP BY k;
        CREATE STREAM TABLE means AS SELECT k, total / n AS mean FROM sums JOIN counts USING (k)
    """)
    return t


def test_a_diamond_refreshed_in_order(diamond: Trickle) -> None:
    t = diamond
    t.sql("INSERT INTO base VALUES (2, 7), (3, 9); DELETE FROM base WHERE v = 2")
    refreshed(t, "sums", "counts", "means")
    assert contents(t, "means") == [(1, 1.0), (2, 6.0), (3, 9.0)]


def test_a_diamond_as_one_unit_never_mixes_old_and_new(diamond: Trickle) -> None:
    t = diamond
    t.sql("INSERT INTO base VALUES (2, 7)")
    found = unit(t, "means", "counts", "sums")
    assert sorted(found) == ["counts FULL", "means DIFFERENTIAL", "sums FULL"]
    assert found[-1] == "means DIFFERENTIAL"
    assert contents(t, "means") == [(1, 1.5), (2, 6.0)]
    assert {action.partition(" ")[2] for action in unit(t, "means", "counts", "sums")} == {"NO_DATA"}


def test_a_unit_with_an_idle_member(diamond: Trickle) -> None:
    t = diamond
    t.sql("CREATE TABLE other (x INT); CREATE STREAM TABLE lonely AS SELECT count(*) AS n FROM other")
    version = version_of(t, "lonely")
    t.sql("UPDATE base SET v = v + 1")
    found = unit(t, "lonely", "sums")
    assert sorted(found) == ["lonely NO_DATA", "sums FULL"]
    assert version_of(t, "lonely") == version
    # Values moved from one row to another: counts stay, and so does everything above them.
    t.sql("UPDATE base SET v = 0")
    assert unit(t, "counts", "sums", "means")[-1] == "means DIFFERENTIAL"


def test_a_member_whose_result_stays_hands_nothing_on(diamond: Trickle) -> None:
    t = diamond
    version = state(t, "counts").version
    assert version is not None
    t.sql("UPDATE base SET v = v * 2")
    unit(t, "sums", "counts", "means")
    assert differences(t, "counts", version) == []
    assert state(t, "counts").version == version
    assert contents(t, "means") == [(1, 3.0), (2, 10.0)]


def test_a_unit_fills_new_members_together(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.create_stream_table("one", "SELECT x FROM a", initialize=False)
    t.create_stream_table("two", "SELECT x + 1 AS x FROM a", initialize=False)
    assert sorted(unit(t, "one", "two")) == ["one FULL", "two FULL"]
    assert contents(t, "two") == [(2,)]


def test_a_failing_diamond_is_wholly_old(diamond: Trickle) -> None:
    t = diamond
    t.sql("CREATE STREAM TABLE risky AS SELECT k, 1 / total AS inverse FROM sums")
    before = {name: contents(t, name) for name in ("sums", "counts", "means", "risky")}
    t.sql("INSERT INTO base VALUES (9, 0)")
    with pytest.raises(QueryError):
        unit(t, "sums", "counts", "means", "risky")
    assert {name: contents(t, name) for name in before} == before
    check(t)
    assert sorted(unit(t, "sums", "counts", "means")) == ["counts FULL", "means DIFFERENTIAL", "sums FULL"]
    t.sql("DELETE FROM base WHERE k = 9")
    unit(t, "sums", "counts", "means", "risky")
