"""Replicas that follow the WAL: the whole way into the lake, and from one capture to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.postgres import Postgres
from trickle.api import Trickle
from trickle.catalog import alerts, databases
from trickle.catalog.outside import Database
from trickle.catalog.records import Event
from trickle.errors import SourceRefused
from trickle.replicas import captures, switching
from trickle.replicas.attach import attach_postgres, detach
from trickle.replicas.ingest import ingest, ingest_one
from trickle.sources.postgres import transition
from trickle.sources.postgres.wal import WalCapture

Session = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def dsn(logical_postgres: Postgres) -> Iterator[str]:
    """A database on a server whose WAL can be read, in place of the plain one."""
    with logical_postgres.database() as url:
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = current_database()"
            )


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be captured from the WAL is looked at by every ingest."""
    monkeypatch.setattr(switching, "PATIENCE", timedelta())


def check(t: Trickle, shop: Session, *names: str) -> None:
    """The replicas equal their sources."""
    for name in names:
        lake = Counter(tuple(row) for row in t.table(f"shop.{name}").collect())
        assert lake == Counter(tuple(row) for row in shop.execute(f"SELECT * FROM {name}")), name


def database(t: Trickle) -> Database:
    with t.warehouse.catalog.read() as tx:
        return databases.get(tx, "shop")


def events(t: Trickle, event: Event) -> list[Any]:
    with t.warehouse.catalog.read() as tx:
        return [alert.payload for alert in alerts.recent(tx, event=event.value)]


def at_the_source(shop: Session) -> tuple[int, int, int]:
    """Slots, publications, triggers."""
    found = shop.execute(
        "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()),"
        " (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal)"
    ).fetchone()
    assert found is not None
    return found


def test_replicas_follow_the_wal(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="wal")
    check(t, shop, "orders", "notes")
    assert at_the_source(shop) == (1, 1, 0)
    assert ingest(t.warehouse) == []

    shop.execute("INSERT INTO orders VALUES (100, 'new', 1.5, 2.5)")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 10")
    shop.execute("UPDATE orders SET id = 200 WHERE id = 50")
    shop.execute("DELETE FROM orders WHERE id BETWEEN 20 AND 25")
    shop.execute("DELETE FROM notes WHERE ctid = (SELECT min(ctid) FROM notes)")
    results = {r.name: (r.rows_inserted, r.rows_deleted) for r in ingest(t.warehouse)}
    assert results == {"shop.orders": (12, 17), "shop.notes": (0, 1)}
    check(t, shop, "orders", "notes")

    shop.execute("TRUNCATE orders; INSERT INTO orders VALUES (1, 'again', 1, 1)")
    ingest(t.warehouse)
    check(t, shop, "orders", "notes")
    assert ingest(t.warehouse) == []

    detach(t.warehouse, "shop")
    assert at_the_source(shop) == (0, 0, 0)


def test_long_values_that_did_not_change_stay(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute('CREATE TABLE docs (id int, "Part No" text, body text, more text, n int, PRIMARY KEY (id, "Part No"))')
    shop.execute("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL, ALTER more SET STORAGE EXTERNAL")
    shop.execute(
        "INSERT INTO docs SELECT g, 'p', repeat(g::text, 4000), repeat('m', 4000), 0 FROM generate_series(1, 9) g"
    )
    attach_postgres(t.warehouse, "shop", dsn, tables=["docs"], cdc_mode="wal")
    shop.execute("UPDATE docs SET n = 1 WHERE id < 4")
    shop.execute("UPDATE docs SET n = 2, id = 100 WHERE id = 3")
    shop.execute("UPDATE docs SET more = NULL WHERE id = 5")
    shop.execute("DELETE FROM docs WHERE id = 6")
    ingest(t.warehouse)
    check(t, shop, "docs")


def test_dying_between_the_lake_and_the_slot_repeats_nothing(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="wal")
    shop.execute("INSERT INTO notes VALUES ('once')")

    def die(self: WalCapture, upto: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WalCapture, "forget", die)
        with pytest.raises(KeyboardInterrupt):
            ingest(t.warehouse)
    check(t, shop, "notes")
    shop.execute("INSERT INTO notes VALUES ('twice')")
    ingest(t.warehouse)
    check(t, shop, "notes")


def test_a_slot_that_is_lost_means_that_all_is_loaded_anew(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    shop.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    shop.execute("DELETE FROM orders WHERE id < 10")
    (result,) = ingest(t.warehouse)
    assert result.loaded
    check(t, shop, "orders")
    shop.execute("DELETE FROM orders WHERE id < 20")
    ingest(t.warehouse)
    check(t, shop, "orders")


def test_auto_takes_the_wal_where_it_can(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"])
    assert database(t).options["capture"] == "wal"
    with pytest.raises(SourceRefused, match="captured from the WAL"):
        attach_postgres(t.warehouse, "shop", dsn, tables=["notes"])
    shop.execute("UPDATE notes SET body = 'still allowed'")


def test_wal_alone_is_refused_where_it_cannot_be_had(t: Trickle, shop: Session, dsn: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        attach_postgres(t.warehouse, "shop", dsn, cdc_mode="wal")
    assert "public.notes has no replica identity" in (caught.value.detail or "")
    assert at_the_source(shop) == (0, 0, 0)


def test_auto_goes_over_to_the_wal_when_nothing_is_in_the_way_any_more(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn)
    assert database(t).options["capture"] == "trigger"
    shop.execute("INSERT INTO notes VALUES ('by triggers')")
    ingest(t.warehouse)
    assert "public.notes has no replica identity" in str(database(t).options["reason"])
    assert at_the_source(shop)[:2] == (0, 0)

    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    shop.execute("INSERT INTO notes VALUES ('on the way')")
    ingest(t.warehouse)
    assert database(t).options["capture"] == "wal"
    assert at_the_source(shop) == (1, 1, 0)
    assert events(t, Event.CDC_TRANSITION) == [{"database": "shop", "from": "trigger", "to": "wal"}]
    check(t, shop, "orders", "notes")
    shop.execute("INSERT INTO notes VALUES ('by wal'); DELETE FROM orders WHERE id = 1")
    ingest(t.warehouse)
    check(t, shop, "orders", "notes")


@pytest.mark.parametrize("moment", ["begin", "switched", "disarm"])
def test_a_transition_that_dies_is_tidied_up(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="trigger", tables=["orders"])
    with t.warehouse.catalog.write() as tx:
        tx.connection().exec_driver_sql("UPDATE databases SET cdc_mode = 'auto'")
    real = getattr(transition, moment)

    def die(*given: Any) -> None:
        if moment == "begin":
            real(*given)
        raise KeyboardInterrupt

    shop.execute("DELETE FROM orders WHERE id = 1")
    with monkeypatch.context() as patch:
        patch.setattr(transition, moment, die)
        with pytest.raises(KeyboardInterrupt):
            ingest(t.warehouse)
    assert at_the_source(shop)[0] == 1
    assert at_the_source(shop)[2] > 0
    shop.execute("DELETE FROM orders WHERE id = 2")
    monkeypatch.setattr(switching, "PATIENCE", timedelta(hours=1))
    ingest(t.warehouse)
    check(t, shop, "orders")
    assert at_the_source(shop)[:2] == ((1, 1) if moment == "disarm" else (0, 0))
    assert "leaving" not in database(t).options
    shop.execute("DELETE FROM orders WHERE id = 3")
    ingest(t.warehouse)
    check(t, shop, "orders")


def test_a_transition_that_fails_leaves_triggers_in_charge(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trickle.sources.postgres import slots

    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="trigger")
    with t.warehouse.catalog.write() as tx:
        tx.connection().exec_driver_sql("UPDATE databases SET cdc_mode = 'auto'")
    monkeypatch.setattr(slots, "LOCK_WAIT", "100ms")
    with psycopg.connect(dsn) as slow:
        # The slot is made first, and would wait for whoever has written before it.
        slow.execute("LOCK TABLE notes IN ROW EXCLUSIVE MODE")
        ingest(t.warehouse)
    assert database(t).options["capture"] == "trigger"
    assert "could not be published" in str(database(t).options["reason"])
    assert at_the_source(shop)[:2] == (0, 0)
    shop.execute("INSERT INTO notes VALUES ('x')")
    ingest(t.warehouse)
    check(t, shop, "orders", "notes")
    assert database(t).options["capture"] == "wal"


def test_a_long_reader_does_not_stop_ingest_after_a_transition(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trickle.sources.postgres import buffers

    monkeypatch.setattr(buffers, "LOCK_TIMEOUT_MS", 100)
    attach_postgres(t.warehouse, "shop", dsn)
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    with psycopg.connect(dsn) as reader:
        reader.execute("SELECT count(*) FROM notes")
        for body in ("on the way", "over there", "later"):
            shop.execute("INSERT INTO notes VALUES (%s)", (body,))
            ingest(t.warehouse)
            check(t, shop, "orders", "notes")
            assert {row.state for row in t.cdc_status()} == {"TRANSITIONING"}
        assert database(t).options["capture"] == "wal"
        monkeypatch.setattr(switching, "PATIENCE", timedelta(hours=1))
        tried = database(t).options["tidied_at"]
        ingest(t.warehouse)
        assert database(t).options["tidied_at"] == tried, "others wait behind who wants to drop a trigger"
    monkeypatch.setattr(switching, "PATIENCE", timedelta())
    ingest(t.warehouse)
    assert at_the_source(shop) == (1, 1, 0)
    assert {row.state for row in t.cdc_status()} == {"WAL"}


def test_auto_falls_back_to_triggers_when_the_wal_cannot_be_had_any_more(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn)
    assert database(t).options["capture"] == "wal"
    shop.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    shop.execute("DROP PUBLICATION " + str(database(t).options["slot"]))
    shop.execute("ALTER TABLE notes REPLICA IDENTITY NOTHING")
    shop.execute("DELETE FROM notes; DELETE FROM orders WHERE id = 1")
    assert {result.loaded for result in ingest(t.warehouse)} == {True}
    assert database(t).options["capture"] == "trigger"
    assert at_the_source(shop)[:2] == (0, 0)
    check(t, shop, "orders", "notes")
    shop.execute("INSERT INTO notes VALUES ('by triggers'); DELETE FROM orders WHERE id = 2")
    ingest(t.warehouse)
    check(t, shop, "orders", "notes")


def test_the_slot_moves_though_only_others_write(t: Trickle, shop: Session, dsn: str) -> None:
    from trickle.sources.postgres import wal

    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    where = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()"
    before = shop.execute(where).fetchone()
    shop.execute("CREATE TABLE noise (x text)")
    assert ingest(t.warehouse) == []
    assert shop.execute(where).fetchone() == before
    shop.execute("INSERT INTO noise SELECT repeat(md5(n::text), 20) FROM generate_series(1, 30000) n")
    assert wal.IDLE_BYTES < 30000 * 640
    assert ingest(t.warehouse) == []
    assert shop.execute(where).fetchone() != before
    shop.execute("DELETE FROM orders WHERE id = 1")
    ingest(t.warehouse)
    check(t, shop, "orders")


def test_the_slot_moves_when_nothing_follows(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    shop.execute("DROP TABLE orders")
    ingest(t.warehouse)
    assert [row.status for row in t.list_sources()] == ["BROKEN"]
    where = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()"
    before = shop.execute(where).fetchone()
    shop.execute("INSERT INTO notes VALUES ('of others')")
    ingest(t.warehouse)
    assert shop.execute(where).fetchone() != before


def test_who_waited_for_the_lock_looks_again(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn)
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    early = database(t)
    ingest(t.warehouse)
    assert (captures.mode_of(early), captures.mode_of(database(t))) == ("trigger", "wal")
    shop.execute("INSERT INTO notes VALUES ('after')")
    assert [(r.name, r.loaded) for r in ingest_one(t.warehouse, early)] == [("shop.notes", False)]
    check(t, shop, "notes")
    detach(t.warehouse, "shop")
    assert ingest_one(t.warehouse, early) == []


def test_a_backlog_is_taken_in_by_one_ingest(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="wal")
    for number in range(4):
        shop.execute("INSERT INTO notes SELECT %s || repeat('x', 100) FROM generate_series(1, 50)", (str(number),))
        # A piece may come to nothing.
        shop.execute("DELETE FROM notes WHERE body LIKE '1%'")
    small = {"piece_changes": 20, "piece_bytes": 2000}
    monkeypatch.setattr(captures, "wal_of", lambda d, c, _s: WalCapture(c, str(d.options["slot"]), **small))
    found = ingest(t.warehouse)
    assert len([result for result in found if result.name == "shop.notes"]) > 2
    check(t, shop, "orders", "notes")
    assert ingest(t.warehouse) == []


def test_what_people_are_told(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    assert {(row.state, row.cdc_mode) for row in t.cdc_status()} == {("TRIGGER", "auto")}
    assert {row.reason for row in t.cdc_status()} == {
        "public.notes has no replica identity: the WAL does not say which row changes"
    }
    assert t.slot_health() == []
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    t.ingest()
    assert {(row.state, row.reason) for row in t.cdc_status()} == {("WAL", None)}
    (slot,) = t.slot_health()
    assert (slot.database, slot.state) == ("shop", "OK")
    assert {row.state for row in t.check_cdc_health()} == {"OK"}
    assert t.rebuild_cdc_triggers() == []
    (kept,) = [row.bytes for row in t.change_buffer_sizes() if row.source.startswith("slot")]
    # The server writes WAL by itself too.
    assert kept is not None
    assert slot.bytes is not None
    assert kept >= slot.bytes > 0


def test_a_database_can_be_let_go_of_in_the_middle_of_a_transition(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach_postgres(t.warehouse, "shop", dsn)
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")

    def die(*_given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(transition, "switched", die)
        with pytest.raises(KeyboardInterrupt):
            ingest(t.warehouse)
    assert {row.state for row in t.cdc_status()} == {"TRANSITIONING"}
    assert at_the_source(shop)[:2] == (1, 1)
    detach(t.warehouse, "shop")
    assert at_the_source(shop) == (0, 0, 0)


def test_lag_is_told_once(t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from trickle.sources.postgres import wal

    monkeypatch.setattr(wal, "MEGABYTE", 1)
    # Far away: how much is kept depends on what the server writes by itself.
    t.sql("SET trickle.slot_lag_critical_mb = 1000000")
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    for _ in range(2):
        shop.execute("DELETE FROM orders WHERE id IN (SELECT min(id) FROM orders)")
        ingest(t.warehouse)
    (told,) = events(t, Event.SLOT_LAG_WARNING)
    assert told["database"] == "shop"
    assert "MB of WAL" in told["detail"]
