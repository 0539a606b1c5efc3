"""Recursive queries on Spark: filled, kept by changes, and compared with DuckDB on the user's own text."""

from __future__ import annotations

from contextlib import closing

import pytest
from sqlglot import parse_one

from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.engine import Engine
from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, Filter, Join, JoinKind, Output, Project, Recursion, RecursiveRef, Values
from trickle.refresh import recursion
from trickle.refresh.faces import Faces
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


def test_reached_nodes_are_kept_by_their_changes(graph: Trickle) -> None:
    create(graph, "reached", REACHED)
    # An alternative to 3 -> 5 comes in the same refresh in which 3 -> 5 goes.
    graph.sql("INSERT INTO edges VALUES (2, 5), (5, 6), (5, 6); DELETE FROM edges WHERE src = 3 AND dst = 5")
    assert refreshed(graph, "reached") == "DIFFERENTIAL"
    assert set(contents(graph, "reached")) == {(a,) for a in (None, 1, 2, 3, 4, 5, 6)}
    # The cycle 2 -> 3 -> 4 -> 2 loses its entry.
    graph.sql("DELETE FROM edges WHERE src = 1")
    assert refreshed(graph, "reached") == "DIFFERENTIAL"
    assert contents(graph, "reached") == [(1,)]


def test_paths_and_what_is_counted_over_them(graph: Trickle) -> None:
    create(graph, "counted", COUNTED)
    graph.sql("UPDATE edges SET src = dst, dst = src WHERE src IN (3, 4); INSERT INTO edges VALUES (5, NULL)")
    assert refreshed(graph, "counted") == "DIFFERENTIAL"


def test_levels_are_computed_anew_and_compared(graph: Trickle) -> None:
    create(graph, "levels", LEVELS)
    graph.sql("DELETE FROM edges WHERE src = 2; INSERT INTO edges VALUES (1, 3), (1, 3)")
    result = graph.refresh_stream_table("levels")
    check(graph, "levels")
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 8, 5)


def test_in_full_as_by_changes(graph: Trickle) -> None:
    create(graph, "paths", PATHS, "FULL")
    graph.sql("DELETE FROM edges WHERE src = 2; INSERT INTO edges VALUES (4, 7)")
    assert refreshed(graph, "paths") == "FULL"


def test_many_rows_stay_with_spark(graph: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "LOCAL_ROWS", 2)
    monkeypatch.setattr(recursion, "_PIECES", 2)
    monkeypatch.setattr("trickle.refresh.making.SMALL_CHANGE", 1)
    create(graph, "paths", PATHS)
    check(graph)
    graph.sql("INSERT INTO edges VALUES (5, 8), (8, 9), (9, 10), (10, 11); DELETE FROM edges WHERE src = 1")
    assert refreshed(graph, "paths") == "DIFFERENTIAL"


def numbers(step: Expr, *, distinct: bool) -> Recursion:
    start = Values(("x",), ((parse("1"),), (parse("1"),), (parse("CAST(NULL AS INT)"),)))
    stepped = Filter(Project(RecursiveRef("n", ("i",)), (Output("j", step),)), parse("j < 4 OR j IS NULL"))
    return Recursion("n", ("n",), start, stepped, distinct)


def parse(text: str) -> Expr:
    return parse_one(text, read="spark")


@pytest.mark.parametrize("is_small", [True, False])
def test_rounds_until_nothing_new_comes(engine: Engine, is_small: bool) -> None:
    with closing(Faces(engine, is_small)) as faces:
        once = faces.run(numbers(parse("i + 1"), distinct=True))
        assert sorted(once.collect(), key=repr) == [(1,), (2,), (3,), (None,)]
        twice = faces.run(Project(numbers(parse("i + 1 + i * 0L"), distinct=True), Output.keep(["n"])))
        # The start says which type the column has.
        assert twice.schema.simpleString() == "struct<n:int>"
        assert twice.count() == 4


def test_a_recursion_inside_another(engine: Engine) -> None:
    inner = Recursion("m", ("m",), Values(("y",), ((parse("1"),), (parse("2"),))), Values(("z",), ()), True)
    step = Project(
        Join(JoinKind.INNER, RecursiveRef("n", ("i",)), inner, parse("i + m < 6")), (Output("s", parse("i + m")),)
    )
    with closing(Faces(engine, True)) as faces:
        found = faces.run(Recursion("n", ("n",), Values(("x",), ((parse("1"),),)), step, True))
        assert sorted(row.n for row in found.collect()) == [1, 2, 3, 4, 5]


def test_a_recursion_without_end_is_told(engine: Engine) -> None:
    endless = numbers(parse("i"), distinct=False)
    with closing(Faces(engine, True, max_depth=5)) as faces, pytest.raises(UnsupportedQuery) as caught:
        faces.run(endless)
    assert caught.value.message == "recursion n did not end after 5 rounds"
    assert "UNION in place of UNION ALL" in str(caught.value.hint)
