"""Stories of refreshes by changes: what is stored, what catches up, what is built anew, what is refused."""

from __future__ import annotations

import json
import random

import pytest
from pyspark.sql.functions import udf
from pyspark.sql.types import IntegerType

from trickle import Trickle
from trickle.apply.steps import Step
from trickle.errors import QueryError, UnsupportedQuery
from trickle.lake import few
from trickle.refresh.cost import REMEMBERED
from trickle.refresh.execute import considered
from trickle.refresh.members import load, take_cut
from trickle.refresh.plan import Facts
from trickle.sql.names import table_name
from trickle.testing import Fault, check, raise_at

NESTED = "SELECT max(total) AS best FROM (SELECT c, sum(v) AS total FROM o GROUP BY c)"


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE o (id INT, c STRING, v INT)")
    t.sql("INSERT INTO o VALUES (1, 'a', 5), (2, 'b', 7), (3, 'a', 1), (4, NULL, 2)")
    return t


def test_inner_tables_catch_up_after_full_refreshes(shop: Trickle) -> None:
    shop.create_stream_table("best", NESTED, refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO o VALUES (5, 'b', 10)")
    assert shop.refresh_stream_table("best", force=True).action == "FULL"
    check(shop)
    shop.sql("DELETE FROM o WHERE id = 5; INSERT INTO o VALUES (6, 'a', 3)")
    assert shop.refresh_stream_table("best", force=True).action == "FULL"
    shop.sql("UPDATE o SET v = 0 WHERE c = 'a'")
    assert shop.refresh_stream_table("best").action == "DIFFERENTIAL"
    check(shop)
    assert [row.best for row in shop.table("best").collect()] == [7]
    # What that took is told apart: the next refresh by changes need not do it.
    done = shop.refresh_history("best", limit=1)[0]
    assert 0 < json.loads(done.details)["caught_up_ms"] < (done.duration_ms or 0)
    shop.sql("INSERT INTO o VALUES (7, 'a', 3)")
    shop.refresh_stream_table("best")
    assert "caught_up_ms" not in json.loads(shop.refresh_history("best", limit=1)[0].details)


def facts(t: Trickle, name: str) -> Facts:
    """What the next refresh would be chosen by."""
    with t.warehouse.catalog.read() as tx:
        members = load(t.warehouse, tx, [table_name(name)], force=False)
    return considered(t.warehouse, members[0], take_cut(t.warehouse, members, {}), {}, force=False)[0]


def test_auto_knows_that_inner_tables_are_behind(shop: Trickle) -> None:
    shop.create_stream_table("best", NESTED)
    shop.sql("INSERT INTO o VALUES (5, 'b', 10)")
    assert not facts(shop, "best").keeping.is_behind
    shop.refresh_stream_table("best", force=True)
    shop.sql("INSERT INTO o VALUES (6, 'b', 10)")
    assert facts(shop, "best").keeping.is_behind


def test_refreshes_with_nothing_to_do_push_nothing_out_of_what_auto_remembers(shop: Trickle) -> None:
    shop.create_stream_table("spent", "SELECT c, sum(v) AS total FROM o GROUP BY c", auto_threshold=0.9)
    for number in (5, 6):
        shop.sql(f"INSERT INTO o VALUES ({number}, 'b', 10)")
        assert shop.refresh_stream_table("spent").action == "DIFFERENTIAL"
        check(shop)
    for _ in range(REMEMBERED + 1):
        assert shop.refresh_stream_table("spent").action == "NO_DATA"
    shop.sql("INSERT INTO o VALUES (7, 'b', 10)")
    assert [sample.by_changes for sample in facts(shop, "spent").keeping.samples] == [True, True, False]


@pytest.mark.parametrize("step", list(Step))
def test_nothing_is_lost_where_a_refresh_ends_while_inner_tables_catch_up(shop: Trickle, step: Step) -> None:
    shop.create_stream_table("best", NESTED, refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO o VALUES (5, 'b', 10)")
    shop.refresh_stream_table("best", force=True)
    shop.sql("UPDATE o SET v = 0 WHERE c = 'a'")
    with raise_at(step), pytest.raises(Fault):
        shop.refresh_stream_table("best")
    for change in ("INSERT INTO o VALUES (6, 'a', 30)", "DELETE FROM o WHERE id = 6"):
        shop.sql(change)
        assert shop.refresh_stream_table("best").action == "DIFFERENTIAL"
        check(shop)


def test_inner_tables_that_caught_up_stay_when_the_refresh_fails_after_it(shop: Trickle) -> None:
    query = "SELECT max(total) AS best FROM (SELECT c, sum(100 % v) AS total FROM o GROUP BY c)"
    shop.create_stream_table("best", query, refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO o VALUES (5, 'b', 10)")
    shop.refresh_stream_table("best", force=True)
    shop.sql("INSERT INTO o VALUES (6, 'b', 0)")
    with pytest.raises(QueryError):
        shop.refresh_stream_table("best")
    shop.sql("UPDATE o SET v = 9 WHERE v = 0")
    assert shop.refresh_stream_table("best").action == "DIFFERENTIAL"
    check(shop)


def test_a_replaced_source_is_read_anew(shop: Trickle) -> None:
    shop.create_stream_table("best", NESTED, refresh_mode="DIFFERENTIAL")
    shop.sql("CREATE OR REPLACE TABLE o (id INT, c STRING, v INT); INSERT INTO o VALUES (1, 'x', 3)")
    assert shop.refresh_stream_table("best").action == "REINITIALIZE"
    check(shop)
    shop.sql("INSERT INTO o VALUES (2, 'x', 4)")
    assert shop.refresh_stream_table("best").action == "DIFFERENTIAL"
    check(shop)


def test_rows_that_differ_in_hidden_columns_only_count_as_none(shop: Trickle) -> None:
    shop.create_stream_table("names", "SELECT DISTINCT c FROM o", refresh_mode="DIFFERENTIAL")
    shop.create_stream_table("count", "SELECT count(*) AS n FROM names", refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO o VALUES (9, 'a', 1), (10, 'z', 1)")
    done = shop.refresh_stream_table("names")
    assert (done.action, done.rows_inserted, done.rows_deleted) == ("DIFFERENTIAL", 1, 0)
    shop.refresh_stream_table("count")
    shop.sql("INSERT INTO o VALUES (11, 'a', 1)")
    assert shop.refresh_stream_table("names").rows_inserted == 0
    assert shop.refresh_stream_table("count").action == "NO_DATA"
    check(shop)


def test_a_mode_that_changes_changes_what_is_stored(shop: Trickle) -> None:
    shop.create_stream_table("sums", "SELECT c, avg(v) AS mean FROM o GROUP BY c", refresh_mode="FULL")
    assert shop.table("sums").columns == ["c", "mean"]
    shop.alter_stream_table("sums", refresh_mode="DIFFERENTIAL")
    shop.sql("DELETE FROM o WHERE id = 1")
    assert shop.refresh_stream_table("sums").action == "DIFFERENTIAL"
    check(shop)
    assert shop.list_auxiliary_columns("sums")
    shop.alter_stream_table("sums", refresh_mode="FULL")
    assert not shop.list_auxiliary_columns("sums")
    check(shop)


def test_a_stream_table_that_was_to_grow_only_and_does_not(shop: Trickle) -> None:
    shop.create_stream_table("log", "SELECT id, v FROM o WHERE v > 1", refresh_mode="DIFFERENTIAL", append_only=True)
    shop.sql("INSERT INTO o VALUES (9, 'a', 9)")
    shop.refresh_stream_table("log")
    assert not shop.alerts()
    shop.sql("DELETE FROM o WHERE id = 9")
    shop.refresh_stream_table("log")
    check(shop)
    assert [alert.event for alert in shop.alerts()] == ["append_only_reverted"]


def test_floating_sums_are_computed_anew_after_a_number_of_refreshes(shop: Trickle) -> None:
    shop.sql("SET trickle.algebraic_drift_reset_cycles = 2")
    shop.create_stream_table("total", "SELECT sum(v / 3) AS s FROM o", refresh_mode="DIFFERENTIAL")
    shop.create_stream_table("exact", "SELECT sum(v) AS s FROM o", refresh_mode="DIFFERENTIAL")
    actions = []
    for number in range(3):
        shop.sql(f"INSERT INTO o VALUES ({20 + number}, 'a', {number})")
        actions.append((shop.refresh_stream_table("total").action, shop.refresh_stream_table("exact").action))
        check(shop)
    assert actions == [("DIFFERENTIAL", "DIFFERENTIAL")] * 2 + [("FULL", "DIFFERENTIAL")]


def test_functions_of_the_user(shop: Trickle) -> None:
    spark = shop.warehouse.engine.spark
    spark.udf.register("twice", udf(lambda v: None if v is None else 2 * v, IntegerType()))
    spark.udf.register("dice", udf(lambda: random.randrange(6), IntegerType()).asNondeterministic())
    shop.create_stream_table("doubled", "SELECT id, twice(v) AS v FROM o", refresh_mode="DIFFERENTIAL")
    shop.sql("UPDATE o SET v = v + 1 WHERE id < 3")
    assert shop.refresh_stream_table("doubled").action == "DIFFERENTIAL"
    check(shop)
    with pytest.raises(UnsupportedQuery, match="dice"):
        shop.create_stream_table("thrown", "SELECT id, dice() AS d FROM o", refresh_mode="DIFFERENTIAL")


def test_vacuum_leaves_what_refreshes_by_changes_need(shop: Trickle) -> None:
    shop.sql("SET trickle.vacuum_retention_hours = 0")
    shop.create_stream_table("best", NESTED, refresh_mode="DIFFERENTIAL")
    for number in range(2):
        shop.sql(f"INSERT INTO o VALUES ({30 + number}, 'b', 50)")
        shop.refresh_stream_table("best")
        assert shop.vacuum()
    shop.sql("DELETE FROM o WHERE id = 30")
    assert shop.refresh_stream_table("best").action == "DIFFERENTIAL"
    check(shop)


def test_columns_that_have_no_type_for_lack_of_a_match(shop: Trickle) -> None:
    """A left join without a match is a column of NULLs, whose type Arrow does not know."""
    shop.sql("CREATE TABLE d (id INT, v INT); INSERT INTO d VALUES (1, 1), (2, 2)")
    queries = {
        "by_c": "SELECT o.c, count(d.v) AS n FROM o LEFT JOIN d ON o.id = d.id GROUP BY o.c",
        "by_v": "SELECT d.v, count(*) AS n FROM o LEFT JOIN d ON o.id = d.id GROUP BY d.v",
        "middle": "SELECT c, percentile(v, 0.5) AS v FROM o GROUP BY c",
    }
    for name, query in queries.items():
        shop.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    for change in (
        "INSERT INTO o VALUES (8, 'a', 1), (9, 'a', 2)",
        "UPDATE o SET v = 5 WHERE id = 8",
        "INSERT INTO o VALUES (10, 'new', 1), (11, 'other', 2)",
        "DELETE FROM o WHERE id IN (9, 10)",
    ):
        shop.sql(change)
        for name in queries:
            assert shop.refresh_stream_table(name).action == "DIFFERENTIAL"
        check(shop)


def test_keys_that_cannot_be_counted(shop: Trickle) -> None:
    shop.sql("CREATE TABLE tagged (tags ARRAY<STRING>, at STRUCT<x: INT>, v INT)")
    query = "SELECT tags, at, sum(v) AS v FROM tagged GROUP BY tags, at"
    shop.create_stream_table("by_tags", query, refresh_mode="DIFFERENTIAL")
    for change in (
        "INSERT INTO tagged SELECT array('a', 'b'), named_struct('x', 1), 1 FROM range(2)",
        "INSERT INTO tagged VALUES (NULL, named_struct('x', 1), 3), (array('a', 'b'), named_struct('x', 1), 1)",
        "DELETE FROM tagged WHERE v = 3",
    ):
        shop.sql(change)
        assert shop.refresh_stream_table("by_tags").action == "DIFFERENTIAL"
        check(shop)


def test_not_in_follows_null_as_it_comes_and_goes(shop: Trickle) -> None:
    """Nobody asks for NULL while the statistics say that there is none: that saves jobs, and stays right."""
    shop.sql("CREATE TABLE banned (v INT); INSERT INTO banned VALUES (7)")
    query = "SELECT id FROM o WHERE v NOT IN (SELECT v FROM banned)"
    shop.create_stream_table("rest", query, refresh_mode="DIFFERENTIAL")

    def after(statement: str) -> int | None:
        shop.sql(statement)
        done = shop.refresh_stream_table("rest")
        assert done.action == "DIFFERENTIAL"
        check(shop)
        return done.spark_jobs

    assert after("INSERT INTO o VALUES (5, 'b', 10), (6, 'b', 7)") == 2, "NULL is asked for by three more"
    after("INSERT INTO banned VALUES (NULL)")
    assert shop.table("rest").count() == 0
    after("INSERT INTO o VALUES (7, 'b', 11)")
    after("DELETE FROM banned WHERE v IS NULL")
    assert {row.id for row in shop.table("rest").collect()} == {1, 3, 4, 5, 7}
    after("INSERT INTO o VALUES (8, 'b', NULL); UPDATE o SET v = NULL WHERE id = 1")
    after("DELETE FROM banned")
    after("UPDATE o SET v = 7 WHERE v IS NULL; INSERT INTO banned VALUES (7), (11)")


def test_in_full_nobody_asks_for_null_either_where_there_is_none(shop: Trickle) -> None:
    shop.sql("CREATE TABLE banned (v INT); INSERT INTO banned VALUES (7)")
    query = "SELECT c, count(DISTINCT id) AS n, sum(v) AS total FROM o WHERE v NOT IN (SELECT v FROM banned) GROUP BY c"
    shop.create_stream_table("rest", query, refresh_mode="AUTO")

    def after(statement: str) -> int | None:
        shop.sql(statement)
        done = shop.refresh_stream_table("rest", force=True)
        assert done.action == "FULL"
        check(shop)
        return done.spark_jobs

    shop.sql("DELETE FROM o WHERE v IS NULL")
    plain = after("INSERT INTO o VALUES (5, 'b', 10), (6, 'b', 7)")
    asking = after("INSERT INTO banned VALUES (NULL)")
    assert shop.table("rest").count() == 0
    assert plain is None or asking is None or plain < asking
    after("DELETE FROM banned WHERE v IS NULL; INSERT INTO o VALUES (8, 'c', NULL)")
    shop.sql("INSERT INTO o VALUES (9, 'c', 12)")
    assert shop.refresh_stream_table("rest").action in ("DIFFERENTIAL", "FULL")
    check(shop)


def test_all_and_any_of_a_subquery(shop: Trickle) -> None:
    shop.sql("CREATE TABLE limits (v INT); INSERT INTO limits VALUES (2), (5)")
    shop.create_stream_table(
        "over", "SELECT id FROM o WHERE v > ALL (SELECT v FROM limits)", refresh_mode="DIFFERENTIAL"
    )
    shop.create_stream_table(
        "some", "SELECT id FROM o WHERE v <= ANY (SELECT v FROM limits)", refresh_mode="DIFFERENTIAL"
    )
    assert sorted(row.id for row in shop.table("over").collect()) == [2]
    for change in ("INSERT INTO limits VALUES (NULL)", "DELETE FROM limits", "INSERT INTO limits VALUES (0)"):
        shop.sql(change)
        shop.refresh_stream_table("over")
        shop.refresh_stream_table("some")
        check(shop)


def test_intervals_are_left_to_spark_on_the_way(t: Trickle) -> None:
    t.sql("CREATE TABLE spans (k INT, y INT, m INT)")
    t.sql("INSERT INTO spans VALUES (1, 1, 6), (1, 3, 0), (2, 0, 5)")
    t.create_stream_table(
        "long_ones",
        "SELECT k, count(CASE WHEN i > INTERVAL '1' YEAR THEN 1 END) AS n,"
        " count(CASE WHEN i > INTERVAL '2' YEAR THEN 1 END) AS n2"
        " FROM (SELECT k, make_ym_interval(y, m) AS i FROM spans WHERE y > 0) GROUP BY k",
        refresh_mode="DIFFERENTIAL",
    )
    for statement in ("INSERT INTO spans VALUES (2, 2, 1), (1, 0, 3)", "DELETE FROM spans WHERE y = 3"):
        t.sql(statement)
        assert t.refresh_stream_table("long_ones").action == "DIFFERENTIAL"
        check(t)


@pytest.mark.parametrize("query", ["SELECT id, c FROM o WHERE v > 1", "SELECT c, sum(v) AS total FROM o GROUP BY c"])
def test_what_was_too_much_for_the_driver_once_is_not_tried_again(
    shop: Trickle, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    shop.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    shop.sql("INSERT INTO o VALUES (5, 'a', 9), (6, 'd', 9), (7, 'e', 9)")

    def tried_again(*_: object) -> None:
        raise AssertionError("collected a second time")

    with monkeypatch.context() as patch:
        patch.setattr(few, "MOST_COLLECTED", 2)
        patch.setattr(few.Few, "collected", tried_again)
        assert shop.refresh_stream_table("s").action == "DIFFERENTIAL"
    check(shop)
