"""Stream tables come, change and go."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.scenarios.story import (
    ask,
    contents,
    differences,
    folder,
    inventory,
    listed,
    refreshed,
    refused,
    state,
)
from trickle.api import Trickle
from trickle.errors import (
    CycleError,
    DependentsExist,
    DuplicateName,
    InvalidName,
    InvalidOption,
    ParseError,
    QueryError,
    Suspended,
    UnknownColumn,
    UnknownTable,
    UnsupportedQuery,
    UnsupportedStatement,
    UnsupportedTable,
    UserError,
    WrongKind,
)
from trickle.testing import check

TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12, 2))")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10.00), (2, 'bob', 5.50), (3, NULL, 1.00)")
    return t


@pytest.mark.portable
def test_a_new_stream_table_is_filled_and_says_so(shop: Trickle) -> None:
    row = shop.create_stream_table("totals", TOTALS, schedule="5s", tier="hot")
    check(shop)
    assert contents(shop, "totals") == [(None, Decimal("1.00")), ("ada", Decimal("10.00")), ("bob", Decimal("5.50"))]
    assert row == state(shop, "totals")
    assert (row.status, row.populated, row.version, row.schedule) == ("ACTIVE", True, 1, "5s")
    assert (row.refresh_mode, row.effective_refresh_mode) == ("AUTO", "FULL")
    assert (row.query, json.loads(row.options)) == (TOTALS, {"tier": "hot"})
    assert row.location == str(folder(shop, "totals"))
    assert row.data_timestamp is not None
    (made,) = shop.refresh_history("totals")
    assert (made.action, made.status, made.initiated_by, made.reason) == ("FULL", "COMPLETED", "INITIAL", "first fill")
    assert (made.rows_inserted, made.rows_deleted, made.version_before, made.version_after) == (3, 0, None, 1)


def test_the_types_are_those_of_sparks_analyser(shop: Trickle) -> None:
    shop.sql(
        "CREATE STREAM TABLE s AS SELECT avg(amount) AS mean, count(*) AS n, max(id) AS last, array(1) AS l FROM orders"
    )
    assert [(c.name, c.type, c.nullable) for c in shop.describe("s")] == [
        ("mean", "decimal(16,6)", True),
        ("n", "bigint", True),
        ("last", "bigint", True),
        ("l", "array<int>", True),
    ]


def test_initialize_false_leaves_it_empty_until_the_first_refresh(shop: Trickle) -> None:
    row = shop.create_stream_table("totals", TOTALS, initialize=False)
    assert (row.status, row.populated, row.version) == ("INITIALIZING", False, None)
    assert shop.refresh_history("totals") == []
    with pytest.raises(UserError, match="has not been filled yet"):
        shop.create_stream_table("top", "SELECT max(total) AS m FROM totals")
    assert [row.name for row in shop.status()] == ["totals"]
    shop.create_stream_table("top", "SELECT max(total) AS m FROM totals", initialize=False)
    with pytest.raises(UserError, match="which has not been filled yet"):
        shop.refresh_stream_table("top")
    result = refreshed(shop, "totals", "top")
    assert (result.action, result.reason) == ("FULL", "first fill")
    assert state(shop, "totals").status == "ACTIVE"


def test_if_not_exists_leaves_what_is_there(shop: Trickle) -> None:
    first = shop.create_stream_table("totals", TOTALS)
    assert shop.create_stream_table_if_not_exists("Totals", "SELECT 1 AS x", schedule="9s") == first
    shop.sql("CREATE STREAM TABLE IF NOT EXISTS totals AS SELECT 1 AS x")
    assert state(shop, "totals") == first
    assert shop.create_stream_table_if_not_exists("other", "SELECT 1 AS x").name == "other"
    with pytest.raises(DuplicateName):
        shop.create_stream_table("totals", TOTALS)
    # The name of a table is no stream table that exists already.
    with pytest.raises((DuplicateName, WrongKind)):
        shop.create_stream_table_if_not_exists("orders", "SELECT 1 AS x")


def test_create_or_replace_with_the_same_definition_does_nothing(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, schedule="5s", tier="hot")
    before = inventory(shop)
    shop.create_or_replace_stream_table("totals", TOTALS, schedule="5s", tier="hot")
    assert inventory(shop) == before
    assert len(shop.refresh_history("totals")) == 1


def test_create_or_replace_with_other_options_computes_nothing(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, schedule="5s", tier="hot")
    row = shop.create_or_replace_stream_table("totals", TOTALS, schedule="10s", description="by customer")
    assert (row.schedule, json.loads(row.options)) == ("10s", {"description": "by customer"})
    assert len(shop.refresh_history("totals")) == 1
    assert not row.needs_reinitialize


def test_a_new_query_with_the_same_columns_hands_consumers_the_difference(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("totals", TOTALS)
    t.create_stream_table("names", "SELECT customer FROM totals")
    version = state(t, "totals").version
    assert version is not None
    t.create_or_replace_stream_table("totals", TOTALS.replace("FROM orders", "FROM orders WHERE id <> 2"))
    check(t)
    assert differences(t, "totals", version) == [("bob", Decimal("5.50"), -1)]
    assert [row.action for row in t.refresh_history("totals")] == ["REINITIALIZE", "FULL"]
    refreshed(t, "names")
    assert contents(t, "names") == [(None,), ("ada",)]


def test_a_new_query_may_add_columns_under_consumers(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("totals", TOTALS)
    t.create_stream_table("names", "SELECT customer FROM totals")
    t.sql("CREATE OR REPLACE STREAM TABLE totals AS " + TOTALS.replace("AS total", "AS total, count(*) AS n"))
    check(t, "totals")
    assert [c.name for c in t.describe("totals")] == ["customer", "total", "n"]
    refreshed(t, "names")
    t.sql("INSERT INTO orders VALUES (4, 'eve', 1)")
    refreshed(t, "totals", "names")
    assert contents(t, "names") == [(None,), ("ada",), ("bob",), ("eve",)]


def test_a_new_query_that_takes_columns_from_consumers_is_refused(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("totals", TOTALS)
    t.create_stream_table("names", "SELECT customer FROM totals")
    before = inventory(t)
    without = "SELECT sum(amount) AS total FROM orders"
    with pytest.raises(DependentsExist, match="stream table names depends on it") as caught:
        t.create_or_replace_stream_table("totals", without, schedule="9s")
    assert "SET trickle.block_source_ddl = off" in (caught.value.hint or "")
    retyped = "SELECT 1 AS customer, sum(amount) AS total FROM orders"
    with pytest.raises(DependentsExist):
        t.alter_stream_table("totals", query=retyped)
    assert inventory(t) == before
    assert (state(t, "totals").query, state(t, "totals").schedule) == (TOTALS, "calculated")
    t.drop_stream_table("names")
    t.create_or_replace_stream_table("totals", without)
    check(t)
    assert contents(t, "totals") == [(Decimal("16.50"),)]


def test_create_or_replace_makes_what_is_not_there_and_refuses_other_kinds(shop: Trickle) -> None:
    shop.sql("CREATE OR REPLACE STREAM TABLE totals AS " + TOTALS)
    check(shop)
    refused(shop, "CREATE OR REPLACE STREAM TABLE orders AS SELECT 1 AS x", WrongKind, "orders is not a stream table")


def test_alter_changes_single_options_and_clears_them(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, schedule="5s", tier="hot", description="x")
    row = shop.alter_stream_table("totals", tier=None, fuse="adaptive")
    assert (row.schedule, json.loads(row.options)) == ("5s", {"description": "x", "fuse": "adaptive"})
    shop.sql("ALTER STREAM TABLE totals SET (schedule = '@hourly', refresh_mode = 'FULL', description = NULL)")
    row = state(shop, "totals")
    assert (row.schedule, row.refresh_mode, json.loads(row.options)) == ("@hourly", "FULL", {"fuse": "adaptive"})
    assert [row.action for row in shop.refresh_history("totals")] == ["REINITIALIZE", "FULL"]
    shop.sql("ALTER STREAM TABLE totals SET (tier = 'cold') AS SELECT count(*) AS n FROM orders")
    check(shop)
    assert contents(shop, "totals") == [(3,)]


def test_alter_refuses_and_changes_nothing(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, partition_by="customer")
    before = state(shop, "totals")
    wrong: list[dict[str, Any]] = [{"teir": "hot"}, {"tier": "warmer"}, {"schedule": "soon"}, {"partition_by": "total"}]
    for changes in wrong:
        with pytest.raises(InvalidOption):
            shop.alter_stream_table("totals", **changes)
    with pytest.raises(UnknownColumn):
        shop.alter_stream_table("totals", query="SELECT nope FROM orders", tier="hot")
    with pytest.raises(UnknownTable, match="no stream table is called total"):
        shop.alter_stream_table("total", tier="hot")
    with pytest.raises(WrongKind):
        shop.alter_stream_table("orders", tier="hot")
    assert state(shop, "totals") == before


def test_a_new_query_that_fails_to_run_leaves_the_old_contents(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS)
    rows = contents(shop, "totals")
    with pytest.raises(QueryError, match="division by zero"):
        shop.alter_stream_table("totals", query="SELECT customer, 1 / (id - 1) AS total FROM orders")
    assert contents(shop, "totals") == rows
    row = state(shop, "totals")
    assert (row.status, row.consecutive_errors) == ("ERROR", 1)


def test_options_are_validated_before_anything_is_made(shop: Trickle) -> None:
    before = inventory(shop)
    for options, words in (
        ({"teir": "hot"}, "no option 'teir'"),
        ({"tier": "lukewarm"}, "tier"),
        ({"schedule": "soon"}, "not a schedule"),
        ({"refresh_mode": "SOMETIMES"}, "SOMETIMES"),
        ({"append_only": "yes"}, "append_only"),
    ):
        with pytest.raises(InvalidOption, match=words):
            shop.create_stream_table("totals", TOTALS, **options)  # type: ignore[arg-type] # what a user may type
    with pytest.raises(UnknownColumn, match="'custmer'") as caught:
        shop.create_stream_table("totals", TOTALS, partition_by="custmer")
    assert caught.value.hint == "did you mean 'customer'?"
    refused(shop, f"CREATE STREAM TABLE s WITH (initialize = 5) AS {TOTALS}", InvalidOption, "initialize")
    assert inventory(shop) == before


def test_queries_that_cannot_be_kept_are_refused_and_leave_nothing(shop: Trickle) -> None:
    t = shop
    before = inventory(t)
    make = "CREATE STREAM TABLE s AS "
    refused(t, make + "SELECT * FROM orders LIMIT 5", UnsupportedQuery, "LIMIT without ORDER BY", hint="ORDER BY")
    refused(t, make + "SELECT * FROM orders TABLESAMPLE (5 ROWS)", UnsupportedQuery, "TABLESAMPLE")
    refused(t, make + "SELECT * FROM orders VERSION AS OF 0", UnsupportedQuery, "VERSION AS OF")
    refused(t, make + "SELECT * FROM trickle.tables", UnsupportedQuery, "system views")
    refused(t, make + "SELECT * FROM s", CycleError, "would read itself")
    refused(t, make + "SELECT * FROM order", UnknownTable, "no table is called order", hint="orders")
    refused(t, make + "SELECT amont FROM orders", UnknownColumn, "amont", hint="amount")
    refused(t, make + "SELECT id, count(*) AS n FROM orders", QueryError, "GROUP BY")
    refused(t, make + "SELECT count(*) FROM orders", InvalidName, "count(1)", hint="alias")
    refused(t, make + "SELECT id, id FROM orders", InvalidName, "there twice")
    refused(t, make + "SELECT NULL AS x FROM orders", UnsupportedTable, "'x' cannot be stored")
    refused(t, make + "SELECT 1 / (id - 2) AS x FROM orders", QueryError, "division by zero")
    refused(t, make + "SELEC 1", ParseError, "SELEC")
    refused(t, "CREATE STREAM TABLE trickle.s AS SELECT 1 AS x", UserError, "trickle")
    refused(t, "CREATE STREAM TABLE s (x) AS SELECT 1", UnsupportedStatement, "takes its columns from its query")
    assert inventory(t) == before
    assert t.status() == []
    assert t.refresh_history() == []


def test_a_cycle_is_refused_with_its_path(t: Trickle) -> None:
    t.sql("CREATE TABLE base (x INT)")
    t.sql("CREATE STREAM TABLE a AS SELECT x FROM base; CREATE VIEW v AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE b AS SELECT x FROM v; CREATE STREAM TABLE c AS SELECT x FROM b")
    before = inventory(t)
    with pytest.raises(CycleError) as caught:
        t.alter_stream_table("a", query="SELECT x FROM c")
    assert caught.value.detail == "a -> c -> b -> v -> a"
    with pytest.raises(CycleError, match="a would depend on itself"):
        t.alter_stream_table("a", query="SELECT x FROM a")
    refused(t, "CREATE OR REPLACE VIEW v AS SELECT x FROM c", CycleError, "v would depend on itself")
    assert inventory(t) == before


def test_dependencies_are_found_through_views_and_subqueries(shop: Trickle) -> None:
    t = shop
    t.sql("CREATE TABLE vip (name STRING); CREATE VIEW big AS SELECT customer FROM orders WHERE amount > 1")
    t.sql("""
        CREATE STREAM TABLE s AS
        WITH chosen AS (SELECT name FROM vip)
        SELECT b.customer FROM big b WHERE b.customer IN (SELECT name FROM chosen)
    """)
    found = {(d.source, d.source_kind, d.direct, d.columns) for d in t.dependencies() if d.name == "s"}
    assert found == {
        ("big", "VIEW", True, None),
        ("orders", "TABLE", False, "customer, amount"),
        ("vip", "TABLE", True, "name"),
    }
    t.sql("INSERT INTO vip VALUES ('ada')")
    assert refreshed(t, "s").reason.startswith("changed: vip")
    t.sql("DELETE FROM orders WHERE customer = 'ada'")
    assert refreshed(t, "s").reason.startswith("changed: orders")
    assert contents(t, "s") == []


def test_a_replaced_view_has_its_stream_tables_rebuilt(shop: Trickle) -> None:
    t = shop
    t.sql("CREATE VIEW v AS SELECT customer FROM orders WHERE id = 1; CREATE STREAM TABLE s AS SELECT customer FROM v")
    t.sql("CREATE TABLE others (customer STRING); INSERT INTO others VALUES ('zoe')")
    t.sql("CREATE OR REPLACE VIEW v AS SELECT customer FROM others")
    assert refreshed(t, "s").action == "REINITIALIZE"
    assert contents(t, "s") == [("zoe",)]
    # From now on the new source counts, and the old one does not.
    t.sql("INSERT INTO orders VALUES (9, 'nobody', 1)")
    assert refreshed(t, "s").action == "NO_DATA"
    t.sql("INSERT INTO others VALUES ('max')")
    assert refreshed(t, "s").reason.startswith("changed: others")
    t.sql("DROP TABLE orders")


def test_drop_removes_the_stream_table_and_its_history_of_dependencies(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("totals", TOTALS)
    t.sql("CREATE VIEW v AS SELECT total FROM totals; CREATE STREAM TABLE top AS SELECT max(total) AS m FROM v")
    with pytest.raises(DependentsExist, match="cannot drop totals") as caught:
        t.drop_stream_table("totals")
    assert caught.value.hint == "DROP STREAM TABLE totals CASCADE drops them too"
    assert sorted(t.drop_stream_table("totals", cascade=True)) == ["top", "totals", "v"]
    assert [row.name for row in t.tables()] == ["orders"]
    refused(t, "DROP STREAM TABLE totals", UnknownTable, "no stream table is called totals")
    refused(t, "DROP STREAM TABLE orders", WrongKind, "orders")
    # The name is free again.
    t.create_stream_table("totals", TOTALS)
    check(t)


def test_suspend_and_resume(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("totals", TOTALS)
    t.sql("INSERT INTO orders VALUES (4, 'eve', 2.00)")
    assert t.suspend_stream_table("totals").status == "SUSPENDED"
    with pytest.raises(Suspended, match="totals is suspended") as caught:
        t.refresh_stream_table("totals")
    assert caught.value.hint == "ALTER STREAM TABLE totals RESUME"
    assert len(contents(t, "totals")) == 3
    assert t.resume_stream_table("totals").status == "ACTIVE"
    refreshed(t, "totals")
    assert len(contents(t, "totals")) == 4
    t.sql("ALTER STREAM TABLE totals SUSPEND; ALTER STREAM TABLE totals RESUME")
    assert [alert.event for alert in t.alerts()] == ["resumed", "resumed"]
    t.create_stream_table("empty", TOTALS, initialize=False)
    t.suspend_stream_table("empty")
    assert t.resume_stream_table("empty").status == "INITIALIZING"


def test_a_materialized_view_is_a_stream_table_when_it_says_so(shop: Trickle) -> None:
    t = shop
    t.sql("CREATE MATERIALIZED VIEW totals WITH (trickle.stream = true, schedule = '5s') AS " + TOTALS)
    check(t)
    assert state(t, "totals").schedule == "5s"
    t.sql("INSERT INTO orders VALUES (4, 'eve', 2.00); REFRESH MATERIALIZED VIEW totals")
    check(t)
    assert ask(t, "SELECT count(*) FROM totals") == [(4,)]
    t.sql("DROP MATERIALIZED VIEW totals")
    refused(
        t, "CREATE MATERIALIZED VIEW m AS SELECT 1 AS x", UnsupportedStatement, "only when asked", hint="trickle.stream"
    )
    assert t.status() == []


def test_partitions_of_a_stream_table(shop: Trickle) -> None:
    shop.create_stream_table("totals", TOTALS, partition_by=["Customer"])
    assert [c.name for c in shop.describe("totals") if c.partition] == ["customer"]
    shop.sql("UPDATE orders SET customer = 'zoe' WHERE id = 1")
    refreshed(shop, "totals")
    assert [row[0] for row in contents(shop, "totals")] == [None, "bob", "zoe"]


def test_a_description_goes_to_the_table_and_the_catalog(shop: Trickle) -> None:
    shop.sql(f"CREATE STREAM TABLE totals WITH (description = 'it''s all here') AS {TOTALS}")
    assert next(row.comment for row in shop.tables() if row.name == "totals") == "it's all here"
    assert listed(shop, "DESCRIBE EXTENDED totals")


def test_a_query_over_no_table_is_kept_once(t: Trickle) -> None:
    t.sql("CREATE STREAM TABLE numbers AS SELECT id FROM range(3)")
    assert contents(t, "numbers") == [(0,), (1,), (2,)]
    assert refreshed(t, "numbers").action == "NO_DATA"


def test_a_diamond_without_consistency_is_told(t: Trickle, caplog: pytest.LogCaptureFixture) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")
    t.create_stream_table("b", "SELECT x FROM a")
    t.create_stream_table("alone", "SELECT x FROM b", diamond_consistency="none")
    assert "diamond_consistency" not in caplog.text
    t.create_stream_table("d", "SELECT a.x FROM a JOIN b ON a.x = b.x", diamond_consistency="none")
    assert "stream table d: diamond_consistency is none: a may reach it at different times" in caplog.text
