"""IMMEDIATE stream tables through the public interface: made, read, altered, dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from tests.immediate.conftest import Session
from trickle.api import Trickle
from trickle.catalog import RefreshMode, databases, hosted, relations, streams
from trickle.errors import (
    DependentsExist,
    InvalidName,
    InvalidOption,
    TrickleError,
    UnsupportedError,
    UnsupportedQuery,
    WrongKind,
)
from trickle.immediate.postgres import install, installed
from trickle.immediate.postgres.steps import Step, observe
from trickle.lake.create import create
from trickle.sql.names import table_name

TOTALS = """SELECT c.region, SUM(o.amount) AS Total, avg(o.amount) AS mean, COUNT(*) AS n
    FROM shop.orders o JOIN shop.customers c ON c.id = o.customer GROUP BY c.region"""
BIG = "SELECT id, Customer, amount * 2 AS twice FROM shop.orders WHERE amount > 10 AND placed < '2024-01-15'"


def rows(t: Trickle, query: str) -> Counter[tuple[Any, ...]]:
    """What Spark says."""
    return Counter(_plain(row) for row in t.sql(query).collect())  # type: ignore[union-attr] # it is a DataFrame


def stored(session: Session, table: str, columns: str) -> Counter[tuple[Any, ...]]:
    """What is in PostgreSQL."""
    return Counter(_plain(row) for row in session.execute(f"SELECT {columns} FROM {table}").fetchall())


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value.normalize() if isinstance(value, Decimal) else value for value in row)


def test_it_lives_in_postgresql_and_is_read_from_there(t: Trickle, shop: Session) -> None:
    row = t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    assert (row.refresh_mode, row.status, row.populated, row.version) == ("IMMEDIATE", "ACTIVE", True, None)
    assert row.location == "shop: public.totals"
    assert [(c.name, c.type) for c in t.describe("totals")] == [
        ("region", "string"),
        ("Total", "decimal(22,2)"),
        ("mean", "decimal(16,6)"),
        ("n", "bigint"),
    ]
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id % 7 = 3")
    shop.execute("DELETE FROM orders WHERE id = 5")
    with shop.transaction(force_rollback=True):
        shop.execute("TRUNCATE orders")
    # The replica is where it was; PostgreSQL's table is not.
    t.ingest()
    expected = rows(t, TOTALS)
    assert stored(shop, "totals", 'region, "Total", mean, n') == expected
    assert rows(t, "SELECT * FROM totals") == expected
    assert Counter(map(_plain, t.table("totals").collect())) == expected


def test_nobody_refreshes_it(t: Trickle, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE", schedule="1s")
    assert [result.name for result in t.tick()] == []
    told = t.refresh_stream_table("totals")
    assert (told.action, told.spark_jobs) == ("NO_DATA", 0)
    assert "it changes with its sources" in told.reason
    assert t.refresh_stream_table("totals", force=True).action == "FULL"
    assert [(h.action, h.initiated_by) for h in t.refresh_history("totals")] == [
        ("FULL", "MANUAL"),
        ("NO_DATA", "MANUAL"),
        ("FULL", "INITIAL"),
    ]
    with pytest.raises(WrongKind, match="cannot be suspended"):
        t.suspend_stream_table("totals")
    for ask in (t.explain_st, t.compact, t.vacuum, lambda name: t.changes(name, 0)):
        with pytest.raises(TrickleError):
            ask("totals")
    t.vacuum()


def test_by_sql(t: Trickle, shop: Session) -> None:
    t.sql(f"CREATE STREAM TABLE big WITH (refresh_mode = 'immediate', description = 'big ones') AS {BIG}")
    shop.execute("INSERT INTO orders VALUES (100, 1, 99.5, '2024-01-02')")
    assert rows(t, "SELECT twice FROM big WHERE id = 100") == Counter({(Decimal(199),): 1})
    assert t.sql("REFRESH STREAM TABLE big").action == "NO_DATA"  # type: ignore[union-attr] # a RefreshResult
    t.sql("DROP STREAM TABLE big")
    assert shop.execute("SELECT to_regclass('public.big')").fetchone() == (None,)
    left = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'trickle_immediate%'"
    assert shop.execute(left).fetchone() == (0,)
    assert t.status() == []


def test_a_stream_table_over_a_stream_table(t: Trickle, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    t.sql("CREATE VIEW known AS SELECT total, n FROM totals WHERE region IS NOT NULL")
    t.create_stream_table("all_of_them", "SELECT sum(total) AS s, max(n) AS m FROM known", refresh_mode="IMMEDIATE")
    shop.execute("UPDATE customers SET region = 'r9' WHERE id < 4")
    assert stored(shop, "all_of_them", "s, m") == rows(t, "SELECT sum(total), max(n) FROM known")
    with pytest.raises(DependentsExist):
        t.drop_stream_table("totals")
    with pytest.raises(DependentsExist):
        t.alter_stream_table("totals", refresh_mode="FULL")
    with pytest.raises(DependentsExist):
        t.sql("CREATE OR REPLACE VIEW known AS SELECT total, n + 1 AS n FROM totals")
    assert sorted(t.drop_stream_table("totals", cascade=True)) == ["all_of_them", "known", "totals"]
    assert shop.execute("SELECT count(*) FROM trickle_immediate.streams").fetchone() == (0,)


def test_over_a_table_of_the_lake_it_lives_in_the_lake_and_does_not_move_at_once(t: Trickle, shop: Session) -> None:
    t.sql("CREATE TABLE lake (id INT)")
    t.create_stream_table("near", "SELECT id FROM lake", refresh_mode="IMMEDIATE")
    t.sql("INSERT INTO lake VALUES (1)")
    assert [row.id for row in t.table("near").collect()] == [1]
    with pytest.raises(UnsupportedError, match="while it moves"):
        t.alter_stream_table("near", query="SELECT id FROM shop.orders")
    t.create_stream_table("far", BIG, refresh_mode="IMMEDIATE")
    with pytest.raises(UnsupportedError, match="while it moves"):
        t.alter_stream_table("far", query="SELECT id FROM lake")


def test_names_are_kept(t: Trickle, shop: Session) -> None:
    odd = 'mart.`Odd "name"; --`'
    assert t.create_stream_table(odd, BIG, refresh_mode="IMMEDIATE").location == 'shop: mart.Odd "name"; --'
    shop.execute("DELETE FROM orders WHERE id < 20")
    assert stored(shop, 'mart."Odd ""name""; --"', '"id", "Customer", "twice"') == rows(t, f"SELECT * FROM {odd}")
    with pytest.raises(InvalidName, match="too long"):
        t.create_stream_table("n" * 64, BIG, refresh_mode="IMMEDIATE")
    t.drop_stream_table(odd)
    assert installed(shop) == []


def test_what_is_refused(t: Trickle, shop: Session) -> None:
    t.sql("CREATE TABLE lake (id INT)")
    with pytest.raises(UnsupportedQuery, match="do not live in one database"):
        t.create_stream_table("x", "SELECT o.id FROM shop.orders o JOIN lake USING (id)", refresh_mode="IMMEDIATE")
    with pytest.raises(InvalidOption, match="cdc_mode"):
        t.create_stream_table("x", BIG, refresh_mode="IMMEDIATE", cdc_mode="wal")
    with pytest.raises(InvalidOption, match="filled when it is made"):
        t.create_stream_table("x", BIG, refresh_mode="IMMEDIATE", initialize=False)
    with pytest.raises(UnsupportedQuery, match=r"UPPER.* is not known to mean the same"):
        t.create_stream_table("x", "SELECT upper(region) AS u FROM shop.customers", refresh_mode="IMMEDIATE")
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    with pytest.raises(UnsupportedQuery, match="lives in PostgreSQL") as caught:
        t.create_stream_table("y", "SELECT sum(n) AS n FROM totals")
    assert "attach_postgres" in str(caught.value.hint)
    assert [row.name for row in t.status()] == ["totals"]
    assert shop.execute("SELECT count(*) FROM trickle_immediate.streams").fetchone() == (1,)


def test_a_deferred_stream_table_reads_it_as_an_attached_table(t: Trickle, dsn: str, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    t.attach_postgres("shop", dsn, tables=["totals"])
    t.create_stream_table("later", "SELECT sum(n) AS n FROM shop.totals")
    shop.execute("DELETE FROM orders WHERE id % 3 = 0")
    t.refresh_stream_table("later")
    assert rows(t, "SELECT n FROM later") == stored(shop, "totals", "sum(n)::bigint")


def test_what_somebody_broke_is_noticed_and_mended(t: Trickle, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    assert [(r.source, r.state) for r in t.check_cdc_health() if r.source == "totals"] == [("totals", "OK")]
    name = "SELECT tgname FROM pg_trigger WHERE tgrelid = '{}'::regclass AND tgname LIKE 'trickle_immediate%insert'"
    (dropped,) = shop.execute(name.format("orders")).fetchone() or ("",)
    (disabled,) = shop.execute(name.format("customers")).fetchone() or ("",)
    shop.execute(f"DROP TRIGGER {dropped} ON orders")
    shop.execute(f"ALTER TABLE customers DISABLE TRIGGER {disabled}")
    shop.execute("INSERT INTO orders VALUES (200, 1, 5, '2024-01-01')")
    (told,) = [r for r in t.check_cdc_health() if r.source == "totals"]
    assert told.state == "CRITICAL"
    assert "a trigger is missing on public.orders" in told.message
    assert "a trigger is disabled on public.customers" in told.message
    assert t.rebuild_cdc_triggers("shop") == ["totals"]
    shop.execute("INSERT INTO orders VALUES (201, 1, 5, '2024-01-01')")
    t.ingest()
    assert stored(shop, "totals", 'region, "Total", mean, n') == rows(t, TOTALS)
    assert [r.state for r in t.check_cdc_health() if r.source == "totals"] == ["OK"]


def test_from_mode_to_mode(t: Trickle, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, schedule="30s")
    lake = t.status()[0].location
    for mode, home in (
        ("IMMEDIATE", "shop: public.totals"),
        ("DIFFERENTIAL", lake),
        ("IMMEDIATE", None),
        ("FULL", lake),
    ):
        row = t.alter_stream_table("totals", refresh_mode=mode)
        assert (row.refresh_mode, row.schedule, row.status) == (mode, "30s", "ACTIVE")
        assert home in (None, row.location)
        shop.execute("UPDATE orders SET amount = amount + 1 WHERE id % 5 = 1")
        t.refresh_stream_table("totals")
        t.ingest()
        assert rows(t, "SELECT * FROM totals") == rows(t, TOTALS), mode
    assert shop.execute("SELECT count(*) FROM trickle_immediate.streams").fetchone() == (0,)


@pytest.mark.parametrize("mode", ["IMMEDIATE", "FULL"])
def test_a_move_that_a_dead_process_left_is_ended(t: Trickle, shop: Session, mode: str) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with t.warehouse.catalog.write() as tx:
        # As it is after the first step.
        big = streams.get(tx, table_name("big"))
        place = t.warehouse.place_for(big.relation.name)
        create(place, t.table("big").schema)
        now = t.warehouse.clock.now()
        relations.update(tx, big.relation.id, now=now, location=t.warehouse.relative(place))
        streams.update(tx, big.relation.id, now=now, refresh_mode=RefreshMode.AUTO, populated=False)
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    row = t.alter_stream_table("big", refresh_mode=mode, query=BIG.replace("10", "5"))
    assert (row.refresh_mode, row.location == "shop: public.big") == (mode, mode == "IMMEDIATE")
    assert rows(t, "SELECT * FROM big") == rows(t, BIG.replace("10", "5"))


def test_another_query(t: Trickle, shop: Session) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    t.alter_stream_table("big", query="SELECT count(*) AS n FROM shop.orders", schedule="1m")
    shop.execute("DELETE FROM orders WHERE id < 10")
    assert stored(shop, "big", "n") == Counter({(51,): 1})
    assert rows(t, "SELECT * FROM big") == Counter({(51,): 1})
    with pytest.raises(TrickleError):
        t.alter_stream_table("big", query="SELECT upper(region) AS u FROM shop.customers")
    assert [row.query for row in t.status()] == ["SELECT count(*) AS n FROM shop.orders"]
    t.create_or_replace_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)


class Fault(Exception):
    """What no code expects."""


@pytest.mark.parametrize("step", [Step.NOTED, Step.INSTALLED, Step.LINKED, Step.PLACED, Step.FILLED, Step.UNLINKED])
def test_a_fault_at_each_step_of_a_move(t: Trickle, shop: Session, step: Step) -> None:
    into = step in (Step.NOTED, Step.INSTALLED, Step.LINKED)
    t.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL" if into else "IMMEDIATE")

    def fail(reached: Step) -> None:
        if reached is step:
            raise Fault

    observe(fail)
    try:
        with pytest.raises(Fault):
            t.alter_stream_table("big", refresh_mode="IMMEDIATE" if into else "DIFFERENTIAL")
    finally:
        observe(None)
    # Readers see it as it was, or as it is to be.
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.tick()
    t.refresh_stream_table("big")
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    (row,) = t.status()
    in_postgres = row.location == "shop: public.big"
    assert in_postgres is (row.refresh_mode == "IMMEDIATE")
    there = shop.execute("SELECT count(*) FROM pg_class WHERE relname = 'big'").fetchone()
    assert there == (1 if in_postgres else 0,)
    # And it can be done again.
    t.alter_stream_table("big", refresh_mode="FULL" if in_postgres else "IMMEDIATE")
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)


@pytest.mark.parametrize("step", [Step.NOTED, Step.INSTALLED, Step.LINKED, Step.REDEFINED])
def test_a_fault_at_each_step_of_a_creation(t: Trickle, shop: Session, step: Step) -> None:
    if step is Step.REDEFINED:
        t.create_stream_table("big", "SELECT id FROM shop.orders", refresh_mode="IMMEDIATE")

    def fail(reached: Step) -> None:
        if reached is step:
            raise Fault

    observe(fail)
    try:
        with pytest.raises(Fault):
            t.create_or_replace_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    finally:
        observe(None)
    made = step in (Step.LINKED, Step.REDEFINED)
    assert [row.query for row in t.status()] == ([BIG] if made else [])
    assert len(installed(shop)) == len(t.status())
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.create_or_replace_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    assert [row.state for row in t.check_cdc_health() if row.source == "big"] == ["OK"]


def test_what_a_process_that_died_left_is_tidied_up(t: Trickle, shop: Session) -> None:
    with t.warehouse.catalog.write() as tx:
        (database,) = databases.listing(tx)
        now = t.warehouse.clock.now()
        left = hosted.add(tx, database.id, schema="public", table="left", columns={}, text="SELECT 1", now=now)
    install(shop, "left", "SELECT id FROM orders", owner=left.uid)
    t.tick()
    assert shop.execute("SELECT to_regclass('public.left')").fetchone() == (None,)
    with t.warehouse.catalog.read() as tx:
        assert hosted.listing(tx) == []


def test_an_index_that_is_missing_is_named(t: Trickle, shop: Session, caplog: pytest.LogCaptureFixture) -> None:
    t.create_stream_table("first", "SELECT id FROM shop.orders ORDER BY amount DESC LIMIT 3", refresh_mode="IMMEDIATE")
    told = [record.getMessage() for record in caplog.records]
    assert any('CREATE INDEX ON "public"."orders" ("amount" DESC NULLS LAST' in message for message in told)


def test_detach_takes_it_along(t: Trickle, shop: Session) -> None:
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    with pytest.raises(DependentsExist):
        t.detach("shop")
    t.detach("shop", cascade=True)
    assert shop.execute("SELECT to_regclass('public.totals')").fetchone() == (None,)
    assert t.list_sources() == []
    shop.execute("INSERT INTO orders VALUES (300, 1, 5, '2024-01-01')")
