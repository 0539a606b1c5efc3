"""Recursive queries on Spark: filled, kept by changes, and compared with DuckDB on the user's own text."""

from __future__ import annotations

import pytest

from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.errors import UnsupportedQuery
from trickle.refresh import recursion
from trickle.testing import check

REACHED = """WITH RECURSIVE p(a) AS (
    SELECT root FROM roots UNION SELECT e.dst FROM p JOIN edges e ON p.a = e.src
) SELECT a FROM p"""
PATHS = """WITH RECURSIVE p(a, b) AS (
    SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src
) SELECT a, b FROM p"""
LEVELS = """WITH RECURSIVE p(a, n) AS (
    SELECT root, 0 FROM roots UNION ALL SELECT e.dst, n + 1 FROM p JOIN edges e ON p.a = e.src WHERE n < 5
) SELECT a, n FROM p"""
COUNTED = """WITH RECURSIVE p(a, b) AS (
    SELECT src, dst FROM edges UNION SELECT p.a, e.dst FROM p JOIN edges e ON p.b = e.src
) SELECT a, count(*) AS n FROM p GROUP BY a"""


@pytest.fixture
def graph(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE roots (root BIGINT); INSERT INTO roots VALUES (1)")
    t.sql("CREATE TABLE edges (src BIGINT, dst BIGINT)")
    t.sql("INSERT INTO edges VALUES (1, 2), (2, 3), (3, 4), (4, 2), (3, 5), (NULL, 1), (6, NULL)")
    return t


def create(t: Trickle, name: str, query: str, mode: str = "DIFFERENTIAL") -> None:
    t.create_stream_table(name, query, refresh_mode=mode)


def refreshed(t: Trickle, name: str) -> str:
    action = t.refresh_stream_table(name).action
    check(t, name)
    return str(action)


def test_a_graph_that_changes_is_kept_by_its_changes(graph: Trickle) -> None:
    for name, query in (("reached", REACHED), ("paths", PATHS), ("levels", LEVELS), ("counted", COUNTED)):
        create(graph, name, query)
    check(graph)
    names = ("reached", "paths", "levels", "counted")
    graph.sql("INSERT INTO edges VALUES (5, 6), (5, 6)")
    assert {refreshed(graph, name) for name in names} == {"DIFFERENTIAL"}
    # An alternative to 3 -> 5 comes; then 3 -> 5 goes, and both ways around at once.
    graph.sql("INSERT INTO edges VALUES (2, 5); DELETE FROM edges WHERE src = 3 AND dst = 5")
    assert {refreshed(graph, name) for name in names} == {"DIFFERENTIAL"}
    assert [a for (a,) in contents(graph, "reached")] == [None, 1, 2, 3, 4, 5, 6]
    # The cycle 2 -> 3 -> 4 -> 2 loses its entry, and one edge of it is turned around.
    graph.sql("DELETE FROM edges WHERE src = 1; UPDATE edges SET src = 4, dst = 3 WHERE src = 3 AND dst = 4")
    assert {refreshed(graph, name) for name in names} == {"DIFFERENTIAL"}
    assert contents(graph, "reached") == [(1,)]
    graph.sql("INSERT INTO roots VALUES (6), (NULL); DELETE FROM roots WHERE root = 1")
    assert {refreshed(graph, name) for name in ("reached", "levels")} == {"DIFFERENTIAL"}


def test_in_full_as_by_changes(graph: Trickle) -> None:
    create(graph, "paths", PATHS, "FULL")
    create(graph, "levels", LEVELS, "AUTO")
    check(graph)
    graph.sql("DELETE FROM edges WHERE src = 2; INSERT INTO edges VALUES (4, 7)")
    assert refreshed(graph, "paths") == "FULL"
    refreshed(graph, "levels")


def test_many_rows_stay_with_spark(graph: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "LOCAL_ROWS", 2)
    monkeypatch.setattr(recursion, "_PIECES", 2)
    monkeypatch.setattr("trickle.refresh.making.SMALL_CHANGE", 1)
    create(graph, "paths", PATHS)
    check(graph)
    graph.sql("INSERT INTO edges VALUES (5, 8), (8, 9), (9, 10), (10, 11); DELETE FROM edges WHERE src = 1")
    assert refreshed(graph, "paths") == "DIFFERENTIAL"


def test_a_recursion_without_end_is_told(t: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trickle.refresh.faces.Faces.max_depth", 5)
    t.sql("CREATE TABLE one (x BIGINT); INSERT INTO one VALUES (1)")
    with pytest.raises(UnsupportedQuery, match="recursion n did not end after 5 rounds"):
        create(t, "endless", "WITH RECURSIVE n(i) AS (SELECT x FROM one UNION ALL SELECT i FROM n) SELECT i FROM n")
