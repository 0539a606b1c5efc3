"""IMMEDIATE stream tables come, change their mode and go; what cannot be IMMEDIATE is refused with the reason."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.immediate.lake.checking import agree, pinned
from tests.scenarios.story import changed, contents, refused, state
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.catalog import pins
from trickle.catalog.records import Kind, Relation
from trickle.errors import (
    ConcurrentModification,
    CorruptTable,
    DependentsExist,
    InvalidOption,
    TrickleError,
    UnsupportedError,
    UnsupportedQuery,
    UserError,
)
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import append
from trickle.refresh.following import _refuse_source
from trickle.tables.pinning import Standing, standing
from trickle.warehouse import Warehouse


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT, k INT, v INT); INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5)")
    return t


def immediate(t: Trickle, name: str, query: str) -> None:
    t.create_stream_table(name, query, refresh_mode="IMMEDIATE")


def test_the_mode_changes_back_and_forth(shop: Trickle) -> None:
    t = shop
    t.create_stream_table("sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k", refresh_mode="FULL")
    for number, mode in enumerate(("IMMEDIATE", "DIFFERENTIAL", "IMMEDIATE", "AUTO", "IMMEDIATE", "FULL", "IMMEDIATE")):
        t.sql(f"INSERT INTO orders VALUES ({number}, {number}, {number})")
        t.alter_stream_table("sums", refresh_mode=mode)
        assert pinned(t) == ({"orders"} if mode == "IMMEDIATE" else set())
        assert state(t, "sums").refresh_mode == mode
        if mode == "IMMEDIATE":
            agree(t)
            t.sql(f"UPDATE orders SET v = v + 1 WHERE k = {number % 3}")
            agree(t)
    t.sql("CREATE OR REPLACE STREAM TABLE sums WITH (refresh_mode = 'IMMEDIATE') AS SELECT count(*) AS n FROM orders")
    agree(t)
    t.sql("DELETE FROM orders WHERE k = 1")
    agree(t)


def test_the_pin_goes_with_the_last_that_follows(shop: Trickle) -> None:
    t = shop
    immediate(t, "sums", "SELECT k, sum(v) AS v FROM orders GROUP BY k")
    immediate(t, "most", "SELECT max(v) AS v FROM sums")
    immediate(t, "other", "SELECT count(*) AS n FROM orders")
    refused(t, "ALTER STREAM TABLE sums SET (refresh_mode = 'AUTO')", DependentsExist, "sums must stay IMMEDIATE")
    assert state(t, "sums").refresh_mode == "IMMEDIATE"
    t.drop_stream_table("sums", cascade=True)
    assert pinned(t) == {"orders"}
    t.sql("INSERT INTO orders VALUES (7, 7, 7)")
    agree(t)
    t.alter_stream_table("other", refresh_mode="AUTO")
    assert pinned(t) == set()
    t.sql("INSERT INTO orders VALUES (8, 8, 8)")
    t.refresh_stream_table("other")
    assert contents(t, "other") == [(5,)]
    # A number that was given out before must not be given out again: the log would take the commit for made.
    t.alter_stream_table("other", refresh_mode="IMMEDIATE")
    t.sql("INSERT INTO orders VALUES (9, 9, 9)")
    assert contents(t, "other") == [(6,)]
    agree(t)
    t.sql("DROP TABLE orders CASCADE")
    assert pinned(t) == set()


def test_what_others_write_is_refused(shop: Trickle, tmp_path: Path) -> None:
    t = shop
    write_deltalake(tmp_path / "theirs", pa.table({"x": [1]}))
    t.attach_table("theirs", tmp_path / "theirs")
    t.create_stream_table("slow", "SELECT sum(v) AS v FROM orders")
    for query, words in (
        ("SELECT x FROM theirs", "theirs is an attached table: others write it"),
        ("SELECT o.v FROM orders o JOIN theirs s ON o.id = s.x", "others write it"),
        ("SELECT v FROM slow", "slow is refreshed by itself"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            immediate(t, "s", query)
        assert words in (caught.value.detail or "")
    assert pinned(t) == set()
    assert [row.name for row in t.status()] == ["slow"]


def test_a_replica_is_refused() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    replica = Relation(1, TableName("shop", "orders"), Kind.REPLICA, "u", "./x", {}, None, (), None, now, now)
    with pytest.raises(UnsupportedError) as caught:
        _refuse_source(TableName("default", "s"), replica, is_immediate=False)
    assert "replica" in (caught.value.detail or "")


@pytest.mark.parametrize(
    "query, kind, words",
    [
        ("SELECT id, current_date() AS d FROM orders", UnsupportedQuery, "depends on time or chance"),
        ("SELECT id, rand() AS r FROM orders", UnsupportedQuery, "chance"),
        ("SELECT 1 AS x", UnsupportedQuery, "reads no table"),
    ],
)
def test_queries_that_change_by_themselves_are_refused(
    shop: Trickle, query: str, kind: type[TrickleError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        immediate(shop, "s", query)
    assert pinned(shop) == set()


def test_options_that_contradict_it_are_refused(shop: Trickle) -> None:
    t = shop
    with pytest.raises(InvalidOption, match="wal"):
        t.create_stream_table("s", "SELECT id FROM orders", refresh_mode="IMMEDIATE", cdc_mode="wal")
    with pytest.raises(InvalidOption, match="filled when it is made"):
        t.create_stream_table("s", "SELECT id FROM orders", refresh_mode="IMMEDIATE", initialize=False)
    immediate(t, "s", "SELECT id FROM orders")
    with pytest.raises(UserError, match="cannot be suspended"):
        t.suspend_stream_table("s")
    assert state(t, "s").status == "ACTIVE"


def test_ddl_under_it_is_refused(shop: Trickle) -> None:
    t = shop
    t.sql("CREATE VIEW big AS SELECT k, v FROM orders WHERE v > 5")
    immediate(t, "s", "SELECT k, sum(v) AS v FROM big GROUP BY k")
    t.sql("SET trickle.block_source_ddl = off")
    for text in (
        "ALTER TABLE orders DROP COLUMN v",
        "ALTER TABLE orders RENAME COLUMN k TO q",
        "CREATE OR REPLACE TABLE orders (id INT, k INT, v INT)",
        "CREATE OR REPLACE VIEW big AS SELECT k, v FROM orders",
    ):
        refused(t, text, DependentsExist, "IMMEDIATE stream table s depends on it", hint="refresh_mode = 'AUTO'")
    t.sql("ALTER TABLE orders DROP COLUMN id; INSERT INTO orders VALUES (2, 50)")
    agree(t)


def test_what_cannot_be_filled_is_not_kept(shop: Trickle) -> None:
    t = shop
    with pytest.raises(TrickleError):
        immediate(t, "bad", "SELECT 1 / (v - 5) AS x FROM orders")
    assert pinned(t) == set()
    assert t.status() == []
    t.create_stream_table("later", "SELECT 1 / (v - 7) AS x FROM orders")
    t.sql("INSERT INTO orders VALUES (9, 9, 7)")
    with pytest.raises(TrickleError):
        t.alter_stream_table("later", refresh_mode="IMMEDIATE")
    assert (state(t, "later").refresh_mode, pinned(t)) == ("AUTO", set())


def test_a_new_query_that_fails_leaves_the_old_one(shop: Trickle) -> None:
    """Statements on what it follows would fail otherwise, one and all."""
    t = shop
    t.sql("CREATE TABLE other (x INT); INSERT INTO other VALUES (1), (0)")
    immediate(t, "s", "SELECT sum(v) AS v FROM orders")
    immediate(t, "above", "SELECT v + 1 AS v FROM s")
    before = state(t, "s")
    with pytest.raises(TrickleError, match=r"(?i)divi"):
        t.alter_stream_table("s", query="SELECT CAST(sum(1 / x) AS BIGINT) AS v FROM other", description="new")
    after = state(t, "s")
    assert (after.query, after.refresh_mode, after.status) == (before.query, "IMMEDIATE", "ACTIVE")
    assert pinned(t) == {"orders"}
    t.sql("INSERT INTO other VALUES (0); INSERT INTO orders VALUES (4, 4, 100)")
    assert contents(t, "above") == [(136,)]
    agree(t)
    t.sql("DELETE FROM other WHERE x = 0")
    t.alter_stream_table("s", query="SELECT CAST(sum(1 / x) AS BIGINT) AS v FROM other")
    assert pinned(t) == {"other"}
    t.sql("INSERT INTO other VALUES (1)")
    assert contents(t, "above") == [(3,)]
    agree(t)


def test_what_was_written_while_a_new_query_failed_is_taken_in(shop: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    t = shop
    t.sql("CREATE TABLE other (x INT); INSERT INTO other VALUES (1), (0)")
    immediate(t, "s", "SELECT sum(v) AS v FROM orders")

    def late(warehouse: Warehouse, followed: Collection[int]) -> None:
        t.sql("INSERT INTO orders VALUES (4, 4, 100)")

    monkeypatch.setattr("trickle.refresh.definition._settle", late)
    with pytest.raises(TrickleError, match=r"(?i)divi"):
        t.alter_stream_table("s", query="SELECT sum(1 / x) AS v FROM other")
    assert contents(t, "s") == [(135,)]
    agree(t)
    t.sql("DELETE FROM orders WHERE id = 4")
    assert contents(t, "s") == [(35,)]
    agree(t)


def test_a_table_that_is_followed_meanwhile_is_not_replaced(shop: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replacement was allowed, and its rows are being written, when a stream table becomes IMMEDIATE."""
    t = shop

    def late(*given: Any) -> Prepared:
        monkeypatch.undo()
        immediate(t, "s", "SELECT sum(v) AS v FROM orders")
        return append(*given)

    monkeypatch.setattr("trickle.tables.ddl.append", late)
    with pytest.raises(DependentsExist, match="IMMEDIATE stream table s"):
        t.sql("CREATE OR REPLACE TABLE orders AS SELECT 1 AS id, 1 AS k, 1 AS v")
    t.sql("INSERT INTO orders VALUES (4, 4, 100)")
    assert contents(t, "s") == [(135,)]
    agree(t)


def test_a_table_that_is_replaced_meanwhile_is_not_followed(shop: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the table stood was found out, and then it is another one."""
    t = shop

    def late(warehouse: Warehouse, table: Relation) -> Standing:
        monkeypatch.undo()
        found = standing(warehouse, table)
        t.sql("CREATE OR REPLACE TABLE orders AS SELECT 1 AS id, 1 AS k, 1 AS v")
        return found

    monkeypatch.setattr("trickle.refresh.following.standing", late)
    with pytest.raises(ConcurrentModification, match="orders was replaced"):
        immediate(t, "s", "SELECT sum(v) AS v FROM orders")
    assert pinned(t) == set()
    immediate(t, "s", "SELECT sum(v) AS v FROM orders")
    t.sql("INSERT INTO orders VALUES (4, 4, 100)")
    assert contents(t, "s") == [(101,)]
    agree(t)


def test_a_pin_beyond_the_log_is_told(shop: Trickle) -> None:
    immediate(shop, "s", "SELECT sum(v) AS v FROM orders")
    with shop.warehouse.catalog.write() as tx:
        (held,) = pins.of(tx).values()
        now = shop.warehouse.clock.now()
        pins.move(tx, held.relation_id, version=99, number=held.number, position=None, now=now)
    with pytest.raises(CorruptTable, match="ends before the version that readers see"):
        shop.sql("INSERT INTO orders VALUES (4, 4, 100)")


def test_a_column_that_is_added_while_a_statement_ends_is_seen(shop: Trickle) -> None:
    """The statement is in the log and readers do not see it yet: first it is ended."""
    t = shop
    immediate(t, "s", "SELECT sum(v) AS v FROM orders")

    def watch(step: Step, _: int) -> None:
        if step is Step.TABLES_COMMITTED:
            observe(None)
            t.sql("ALTER TABLE orders ADD COLUMN note STRING")

    observe(watch)
    try:
        t.sql("INSERT INTO orders VALUES (4, 4, 100)")
    finally:
        observe(None)
    assert changed(t, "UPDATE orders SET note = 'x' WHERE note IS NULL AND id = -1") == (0, 0)
    assert contents(t, "orders") == [(1, 1, 10, None), (2, 1, 20, None), (3, 2, 5, None), (4, 4, 100, None)]
    agree(t, moved=True)
