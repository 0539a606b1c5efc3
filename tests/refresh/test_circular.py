"""Stream tables that read each other: paths over one kind of edge after the other, each table from the other one's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.scenarios.story import contents, differences, state
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.errors import CycleError, TrickleError, UnsupportedQuery
from trickle.refresh import fixpoint
from trickle.refresh.execute import refresh
from trickle.sql.names import table_name
from trickle.testing import Fault, check, raise_at

ROADS = "SELECT src, dst FROM roads"
BY_ROAD = """SELECT src, dst FROM roads
             UNION SELECT p.src, r.dst FROM by_rail p JOIN roads r ON p.dst = r.src"""
BY_RAIL = """SELECT src, dst FROM rails
             UNION SELECT p.src, r.dst FROM by_road p JOIN rails r ON p.dst = r.src"""

Pairs = set[tuple[int, int]]


def expected(roads: Pairs, rails: Pairs) -> tuple[Pairs, Pairs]:
    """Both tables by the definition: from nothing, until nothing is added."""
    by_road, by_rail = set[tuple[int, int]](), set[tuple[int, int]]()
    while True:
        road = roads | {(a, d) for a, b in by_rail for c, d in roads if b == c}
        rail = rails | {(a, d) for a, b in by_road for c, d in rails if b == c}
        if (road, rail) == (by_road, by_rail):
            return road, rail
        by_road, by_rail = road, rail


@pytest.fixture
def graph(t: Trickle) -> Trickle:
    t.sql("SET trickle.allow_circular = true")
    t.sql("CREATE TABLE roads (src BIGINT, dst BIGINT); INSERT INTO roads VALUES (1, 2), (3, 4), (5, 6)")
    t.sql("CREATE TABLE rails (src BIGINT, dst BIGINT); INSERT INTO rails VALUES (2, 3), (4, 5), (8, 1)")
    return t


@pytest.fixture
def travel(graph: Trickle) -> Trickle:
    """A cycle of two: closed by giving the first another query."""
    graph.create_stream_table("by_road", ROADS)
    graph.create_stream_table("by_rail", BY_RAIL)
    graph.alter_stream_table("by_road", query=BY_ROAD)
    return graph


def assert_right(t: Trickle) -> None:
    roads, rails = ({tuple(row) for row in contents(t, name)} for name in ("roads", "rails"))
    check(t)
    for name, pairs in zip(("by_road", "by_rail"), expected(roads, rails), strict=True):
        assert contents(t, name) == sorted(pairs)


def details(t: Trickle, name: str) -> dict[str, object]:
    found = json.loads(t.refresh_history(name)[0].details)
    assert isinstance(found, dict)
    return found


def refused(act: Callable[[], object], kind: type[TrickleError], *words: str) -> TrickleError:
    with pytest.raises(kind) as caught:
        act()
    for word in words:
        assert word in str(caught.value)
    return caught.value


def test_both_move_together_through_insertions_and_deletions(travel: Trickle) -> None:
    t = travel
    assert_right(t)
    t.sql("INSERT INTO rails VALUES (6, 7), (6, 1)")
    result = t.refresh_stream_table("by_rail")
    assert (result.name, result.action) == ("by_rail", "FULL")
    assert_right(t)
    assert [row.name for row in t.refresh_history(limit=2)] == ["by_rail", "by_road"]
    assert {details(t, name)["code"] for name in ("by_road", "by_rail")} == {"CIRCULAR"}
    assert "changed: rails; in full, as it lies on a cycle" in result.reason
    t.sql("DELETE FROM roads WHERE src = 3; UPDATE rails SET dst = 5 WHERE src = 2")
    t.refresh_stream_table("by_road")
    assert_right(t)


def test_rows_that_only_hold_each_other_up_vanish(travel: Trickle) -> None:
    # 10 -> 11 by road and 11 -> 10 by rail: from then on every trip goes round.
    travel.sql("INSERT INTO roads VALUES (10, 11); INSERT INTO rails VALUES (11, 10), (1, 10)")
    travel.refresh_stream_table("by_road")
    assert {(1, 11), (11, 11)} <= set(contents(travel, "by_road"))
    travel.sql("DELETE FROM rails WHERE src = 1; DELETE FROM roads WHERE src = 10")
    travel.refresh_stream_table("by_road")
    assert_right(travel)


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(travel: Trickle, seed: int) -> None:
    choices = random.Random(seed)
    for _ in range(3):
        for name in ("roads", "rails"):
            pairs = [f"({choices.randrange(9)}, {choices.randrange(9)})" for _ in range(choices.randrange(1, 5))]
            travel.sql(f"INSERT INTO {name} VALUES {', '.join(pairs)}")
            if choices.random() < 0.4:
                travel.sql(f"DELETE FROM {name} WHERE src = {choices.randrange(9)} OR dst = {choices.randrange(9)}")
        travel.refresh_stream_table(choices.choice(("by_road", "by_rail")))
        assert_right(travel)


def test_after_insertions_rounds_begin_at_what_is_stored(travel: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    t, starts = travel, list[int]()
    add = fixpoint.Fixpoint.add

    def watched(self: fixpoint.Fixpoint, name: str, tree: object, schema: object, start: fixpoint.Rows | None) -> None:
        starts.append(0 if start is None else start.count)
        add(self, name, tree, schema, start)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(fixpoint.Fixpoint, "add", watched)
    stored = [len(contents(t, name)) for name in ("by_road", "by_rail")]
    t.sql("INSERT INTO roads VALUES (7, 8)")
    t.refresh_stream_table("by_road")
    assert_right(t)
    assert sorted(starts) == sorted(stored)
    starts.clear()
    t.sql("DELETE FROM roads WHERE src = 7")
    t.refresh_stream_table("by_road")
    assert_right(t)
    assert starts == [0, 0]


def test_consumers_see_what_differs_and_no_more(travel: Trickle) -> None:
    t = travel
    t.create_stream_table("trips", "SELECT count(*) AS n FROM by_road", refresh_mode="DIFFERENTIAL")
    before = state(t, "by_road").version
    assert before is not None
    t.sql("INSERT INTO roads VALUES (20, 21); DELETE FROM roads WHERE src = 5")
    result = t.refresh_stream_table("by_road")
    gone = [(station, 6, -1) for station in (1, 2, 3, 4, 5, 8)]
    assert differences(t, "by_road", before) == [*gone, (20, 21, 1)]
    assert (result.rows_inserted, result.rows_deleted) == (1, 6)
    assert t.refresh_stream_table("trips").action == "DIFFERENTIAL"
    check(t)


def test_an_idle_cycle_costs_no_job(travel: Trickle) -> None:
    with travel.warehouse.engine.count_jobs() as count:
        results = [travel.refresh_stream_table(name) for name in ("by_road", "by_rail")]
    assert [(r.name, r.action, r.spark_jobs) for r in results] == [("by_road", "NO_DATA", 0), ("by_rail", "NO_DATA", 0)]
    assert results[0].reason == "no source has changed"
    assert count.jobs == 0
    # Empty commits move positions without a change of rows.
    travel.sql("DELETE FROM roads WHERE src = 999")
    assert travel.refresh_stream_table("by_rail").action == "NO_DATA"
    check(travel)


def test_a_tick_moves_the_cycle_and_then_its_readers(travel: Trickle) -> None:
    t = travel
    t.create_stream_table("trips", "SELECT count(*) AS n FROM by_road")
    t.sql("INSERT INTO roads VALUES (7, 8); DELETE FROM rails WHERE src = 4")
    now = datetime.now(UTC) + timedelta(hours=1)
    moved = [result.name for result in t.tick(now)]
    assert (set(moved[:2]), moved[2:]) == ({"by_road", "by_rail"}, ["trips"])
    assert_right(t)
    assert t.tick(now + timedelta(hours=1)) == []


def test_the_history_tells_how_many_rounds_it_took(travel: Trickle) -> None:
    rounds = {details(travel, name)["fixpoint_iterations"] for name in ("by_road", "by_rail")}
    # 8 -> 1 -> 2 -> ... -> 6 changes the means of travel five times; two changes fit into a round.
    assert rounds == {4}


def test_a_cycle_is_made_of_tables_that_were_never_filled(graph: Trickle) -> None:
    graph.create_stream_table("by_road", ROADS, initialize=False)
    graph.create_stream_table("by_rail", BY_RAIL, initialize=False)
    graph.create_or_replace_stream_table("by_road", BY_ROAD, initialize=False)
    assert not state(graph, "by_road").populated
    graph.refresh_stream_table("by_rail")
    assert_right(graph)


def test_a_table_may_read_itself(graph: Trickle) -> None:
    graph.create_stream_table("reached", ROADS)
    graph.alter_stream_table(
        "reached", query=f"{ROADS} UNION SELECT p.src, r.dst FROM reached p JOIN rails r ON p.dst = r.src"
    )
    assert contents(graph, "reached") == [(1, 2), (1, 3), (3, 4), (3, 5), (5, 6)]
    graph.sql("INSERT INTO rails VALUES (6, 9); DELETE FROM roads WHERE src = 1")
    graph.refresh_stream_table("reached")
    assert contents(graph, "reached") == [(3, 4), (3, 5), (5, 6), (5, 9)]
    assert graph.refresh_stream_table("reached").action == "NO_DATA"
    check(graph)


def test_copies_are_counted_where_queries_keep_them(graph: Trickle) -> None:
    """Ways by length, as many copies as there are ways; the bound ends it."""
    graph.create_stream_table("ways", "SELECT src, dst, 1 AS n FROM roads")
    graph.create_stream_table("longer", "SELECT w.src, r.dst, n + 1 AS n FROM ways w JOIN rails r ON w.dst = r.src")
    graph.alter_stream_table(
        "ways",
        query="""SELECT src, dst, 1 AS n FROM roads
                 UNION ALL SELECT l.src, r.dst, n + 1 FROM longer l JOIN roads r ON l.dst = r.src WHERE n < 6""",
    )
    graph.sql("INSERT INTO roads VALUES (1, 2), (3, 4), (6, 2); INSERT INTO rails VALUES (6, 1)")
    graph.refresh_stream_table("longer")
    assert contents(graph, "ways").count((1, 4, 3)) == 4
    graph.sql("DELETE FROM roads WHERE src = 6; INSERT INTO rails VALUES (2, 3)")
    graph.refresh_stream_table("ways")
    assert contents(graph, "ways").count((1, 4, 3)) == 8
    check(graph)


def test_many_rows_stay_with_spark(travel: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixpoint, "LOCAL_ROWS", 2)
    travel.sql("INSERT INTO roads VALUES (7, 8); INSERT INTO rails VALUES (6, 7); DELETE FROM roads WHERE src = 3")
    travel.refresh_stream_table("by_road")
    assert_right(travel)
    travel.sql("INSERT INTO roads VALUES (3, 4)")
    travel.refresh_stream_table("by_road")
    assert_right(travel)


def test_a_diamond_beside_the_cycle_moves_with_it(travel: Trickle) -> None:
    t = travel
    t.create_stream_table("stations", "SELECT DISTINCT src AS s FROM rails")
    t.alter_stream_table("by_road", query=f"{BY_ROAD} UNION SELECT s, s FROM stations")
    t.create_stream_table(
        "both", "SELECT a.src, a.dst FROM by_road a JOIN by_rail b ON a.src = b.src AND a.dst = b.dst"
    )
    t.sql("INSERT INTO rails VALUES (6, 1), (2, 2); DELETE FROM roads WHERE src = 5")
    unit = [table_name(name) for name in ("both", "by_rail", "stations", "by_road")]
    results = refresh(t.warehouse, unit)
    assert {r.name for r in results} == {"both", "by_rail", "stations", "by_road"}
    check(t)
    assert {(s, s) for s in (2, 4, 6, 8)} <= set(contents(t, "by_road"))
    again = refresh(t.warehouse, unit)
    assert {r.rows_inserted + r.rows_deleted for r in again} == {0}


def test_a_cycle_through_a_view_and_the_clock(graph: Trickle) -> None:
    graph.create_stream_table("by_road", ROADS)
    graph.sql("CREATE VIEW legs AS SELECT p.src, r.dst FROM by_road p JOIN rails r ON p.dst = r.src")
    graph.create_stream_table("by_rail", "SELECT src, dst FROM rails UNION SELECT src, dst FROM legs")
    graph.alter_stream_table("by_road", query=f"{BY_ROAD} WHERE now() > TIMESTAMP'2020-01-01'")
    assert_right(graph)
    graph.sql("INSERT INTO roads VALUES (7, 8); INSERT INTO rails VALUES (6, 7)")
    graph.refresh_stream_table("by_road")
    assert_right(graph)


def test_columns_get_the_types_that_both_queries_agree_on(graph: Trickle) -> None:
    graph.sql("CREATE TABLE small (src INT, dst INT); INSERT INTO small VALUES (1, 2), (3, 9)")
    graph.create_stream_table("by_road", "SELECT src, dst FROM small")
    graph.create_stream_table("by_rail", "SELECT src, dst FROM by_road")
    closing = f"SELECT src, dst FROM small UNION {ROADS} UNION SELECT src, dst FROM by_rail"
    graph.sql("SET trickle.block_source_ddl = off")
    graph.alter_stream_table("by_road", query=closing)
    assert [field.dataType.simpleString() for field in graph.table("by_rail").schema.fields] == ["bigint", "bigint"]
    check(graph)
    assert contents(graph, "by_rail") == [(1, 2), (3, 4), (3, 9), (5, 6)]


def test_a_cycle_that_is_opened_again(travel: Trickle) -> None:
    t = travel
    t.alter_stream_table("by_road", query=ROADS)
    check(t, "by_road")
    assert t.refresh_stream_table("by_rail").action == "REINITIALIZE"
    t.sql("INSERT INTO roads VALUES (7, 8)")
    t.refresh_stream_table("by_road")
    assert t.refresh_stream_table("by_rail").action == "DIFFERENTIAL"
    check(t)


def test_cycles_are_dropped_as_one(travel: Trickle) -> None:
    travel.sql("DROP STREAM TABLE by_road CASCADE")
    assert [row.name for row in travel.status()] == []


def test_cycles_are_refused_unless_they_are_allowed(graph: Trickle) -> None:
    t = graph
    t.create_stream_table("by_road", ROADS)
    t.create_stream_table("by_rail", BY_RAIL)
    t.sql("SET trickle.allow_circular = false")
    refused(lambda: t.alter_stream_table("by_road", query=BY_ROAD), CycleError, "by_road -> by_rail -> by_road")
    refused(lambda: t.create_or_replace_stream_table("by_road", BY_ROAD), CycleError, "by_road -> by_rail -> by_road")
    assert contents(t, "by_road") == [(1, 2), (3, 4), (5, 6)]


REFUSED = {
    "SELECT src, max(dst) AS dst FROM by_rail GROUP BY src": "aggregate max over by_rail",
    "SELECT src, dst FROM roads WHERE src NOT IN (SELECT src FROM by_rail)": "ANTI JOIN with the right side over",
    "SELECT r.src, p.dst FROM roads r LEFT JOIN by_rail p ON p.src = r.src": "LEFT JOIN with the right side over",
    "SELECT src, row_number() OVER (ORDER BY dst) AS dst FROM by_rail": "window function row_number over by_rail",
    "SELECT src, dst FROM by_rail ORDER BY src, dst LIMIT 3": "LIMIT over by_rail",
    "SELECT src, dst FROM roads EXCEPT SELECT src, dst FROM by_rail": "aggregate sum over by_rail",
    "SELECT src, CAST(rand() * dst AS BIGINT) AS dst FROM by_rail": "depends on chance",
}


def test_a_cycle_that_is_not_monotone_is_refused(graph: Trickle) -> None:
    graph.create_stream_table("by_road", ROADS)
    graph.create_stream_table("by_rail", BY_RAIL)
    for closing, words in REFUSED.items():
        error = refused(partial(graph.alter_stream_table, "by_road", query=closing), CycleError, words)
        assert error.message.startswith("the query of by_road")
        assert error.detail == "by_road -> by_rail -> by_road"
    assert contents(graph, "by_road") == [(1, 2), (3, 4), (5, 6)]


def test_the_other_tables_of_a_cycle_have_to_be_monotone_too(graph: Trickle) -> None:
    graph.create_stream_table("by_road", ROADS)
    graph.create_stream_table("farthest", "SELECT src, max(dst) AS dst FROM by_road GROUP BY src")
    error = refused(
        lambda: graph.alter_stream_table("by_road", query=f"{ROADS} UNION SELECT src, dst FROM farthest"), CycleError
    )
    assert error.message.startswith("the query of farthest is not monotone on a cycle of stream tables: aggregate max")


def test_a_cycle_is_not_kept_by_changes(graph: Trickle) -> None:
    t = graph
    t.create_stream_table("by_road", ROADS, refresh_mode="DIFFERENTIAL")
    t.create_stream_table("by_rail", BY_RAIL)
    words = ("by_road lies on a cycle", "CIRCULAR: by_road -> by_rail -> by_road")
    refused(lambda: t.alter_stream_table("by_road", query=BY_ROAD), UnsupportedQuery, *words)
    t.alter_stream_table("by_road", query=BY_ROAD, refresh_mode="AUTO")
    assert state(t, "by_road").effective_refresh_mode == "FULL"
    refused(lambda: t.alter_stream_table("by_rail", refresh_mode="DIFFERENTIAL"), UnsupportedQuery, "CIRCULAR")
    t.alter_stream_table("by_rail", refresh_mode="FULL")
    assert_right(t)


def test_a_cycle_without_end_is_an_error_and_changes_nothing(travel: Trickle) -> None:
    t = travel
    before = {name: (state(t, name).version, contents(t, name)) for name in ("by_road", "by_rail")}
    t.sql("SET trickle.max_fixpoint_iterations = 6")
    endless = f"{ROADS} UNION ALL SELECT src, dst FROM by_rail UNION ALL SELECT src, dst FROM by_road"
    words = ("did not settle after 6 rounds", "still changing: by_road")
    error = refused(lambda: t.alter_stream_table("by_road", query=endless), UnsupportedQuery, *words)
    assert "UNION in place of UNION ALL" in str(error.hint)
    for name, (version, rows) in before.items():
        assert (state(t, name).status, state(t, name).version) == ("ERROR", version)
        assert t.refresh_history(name)[0].error_code == "UNSUPPORTED_QUERY"
        assert contents(t, name) == rows
    t.sql("SET trickle.max_fixpoint_iterations = 100")
    t.alter_stream_table("by_road", query=BY_ROAD)
    assert state(t, "by_road").status == "ACTIVE"
    assert_right(t)


@pytest.mark.parametrize("step", [Step.STARTED, Step.STAGED, Step.INTENT_WRITTEN, Step.TABLE_COMMITTED])
def test_a_fault_leaves_the_old_contents_until_both_are_new(travel: Trickle, step: Step) -> None:
    t = travel
    before = {name: contents(t, name) for name in ("by_road", "by_rail")}
    t.sql("DELETE FROM roads WHERE src = 3; INSERT INTO rails VALUES (6, 7)")
    with raise_at(step), pytest.raises(Fault):
        t.refresh_stream_table("by_rail")
    assert {name: contents(t, name) for name in before} == before
    t.refresh_stream_table("by_road")
    assert_right(t)
    assert t.refresh_stream_table("by_rail").action == "NO_DATA"
