"""What can go wrong at the server: one clear error each, and nothing lost or twice when it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.postgres import Postgres, running_postgres
from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.errors import SourceRefused, SourceUnreachable, TrickleError
from trickle.postgres import connect
from trickle.sources.postgres.buffers import TriggerCapture

CHANGES = (
    "UPDATE orders SET amount = amount + 1 WHERE id < 10; DELETE FROM orders WHERE id = 20;"
    " INSERT INTO notes VALUES ('new'), ('new')"
)


def agrees(t: Trickle, shop: Session) -> bool:
    return all(lake(t, f"shop.{name}") == source(shop, name) for name in ("orders", "notes"))


def is_clear(error: TrickleError, code: str) -> bool:
    """It has a code, says what happened, and what to do."""
    assert error.code == code
    assert error.detail
    assert error.hint
    assert "s3cret" not in str(error)
    return True


@pytest.fixture
def role(postgres: Postgres, shop: Session) -> Iterator[str]:
    """A user who is asked for a password, and may do everything."""
    settings = postgres.data / "pg_hba.conf"
    before = settings.read_text()
    postgres.execute("DROP ROLE IF EXISTS asked")
    postgres.execute("CREATE ROLE asked SUPERUSER LOGIN PASSWORD 's3cret'")
    settings.write_text("local all asked scram-sha-256\n" + before)
    postgres.execute("SELECT pg_reload_conf()")
    yield "asked"
    settings.write_text(before)
    postgres.execute("SELECT pg_reload_conf()")
    shop.execute("DROP OWNED BY asked; DROP ROLE asked")


def test_a_wrong_password(t: Trickle, shop: Session, dsn: str, postgres: Postgres, role: str) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    with pytest.raises(SourceRefused, match="does not let Trickle in") as caught:
        t.attach_postgres("shop", postgres.url(name, user=role, password="wrong"))
    assert is_clear(caught.value, "SOURCE_REFUSED")
    with pytest.raises(SourceRefused, match="does not let"):
        t.attach_postgres("shop", postgres.url(name, user=role))
    assert t.list_sources() == []

    right = postgres.url(name, user=role, password="s3cret")
    t.attach_postgres("shop", right)
    shop.execute(CHANGES)
    shop.execute("ALTER ROLE asked PASSWORD 's3cret_changed'")
    with pytest.raises(SourceRefused) as caught:
        t.ingest()
    assert is_clear(caught.value, "SOURCE_REFUSED")
    assert "s3cret" not in str(t.list_sources())
    shop.execute("ALTER ROLE asked PASSWORD 's3cret'")
    t.ingest()
    assert agrees(t, shop)
    t.detach("shop")


def test_another_password(t: Trickle, shop: Session, dsn: str, postgres: Postgres, role: str) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    t.attach_postgres("shop", postgres.url(name, user=role, password="s3cret"), tables=["orders"])
    shop.execute("ALTER ROLE asked PASSWORD 's3cret_changed'")
    # Attaching a further table is the way to give another password.
    t.attach_postgres("shop", postgres.url(name, user=role, password="s3cret_changed"), tables=["notes"])
    shop.execute(CHANGES)
    t.ingest()
    assert agrees(t, shop)
    t.detach("shop")


MOMENTS: dict[str, Callable[..., Any]] = {
    "before it reads": TriggerCapture.position,
    "while it reads": TriggerCapture._rows,
    "before it forgets": TriggerCapture.forget,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_session_ends_in_the_middle(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute(CHANGES)
    real = MOMENTS[moment]

    def cut(self: TriggerCapture, *given: Any) -> Any:
        shop.execute("SELECT pg_terminate_backend(%s)", (self._connection.info.backend_pid,))
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(TriggerCapture, real.__name__, cut)
        with pytest.raises(SourceUnreachable) as caught:
            t.ingest()
    assert is_clear(caught.value, "SOURCE_UNREACHABLE")
    assert agrees(t, shop) == (moment == "before it forgets"), "all of it or nothing"
    shop.execute("INSERT INTO notes VALUES ('new')")
    t.ingest()
    assert agrees(t, shop)
    assert t.ingest() == []


@pytest.mark.timeout(240)
def test_the_server_dies_in_the_middle(t: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_postgres(wal_level="logical", synchronous_commit="on") as server, server.database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as shop:
            shop.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
            shop.execute("CREATE TABLE notes (body text); ALTER TABLE notes REPLICA IDENTITY FULL")
            shop.execute("INSERT INTO orders SELECT g, g FROM generate_series(1, 50) g")
            for mode in ("trigger", "wal"):
                t.attach_postgres(f"shop_{mode}", dsn, cdc_mode=mode)
            shop.execute(CHANGES)

        def die(self: TriggerCapture, upto: str) -> None:
            server.kill()

        with monkeypatch.context() as patch:
            patch.setattr(TriggerCapture, "forget", die)
            with pytest.raises(SourceUnreachable) as caught:
                t.ingest()
        assert is_clear(caught.value, "SOURCE_UNREACHABLE")
        with pytest.raises(SourceUnreachable):
            t.ingest("shop_wal")
        server.start()
        with psycopg.connect(dsn, autocommit=True) as shop:
            shop.execute("DELETE FROM orders WHERE id = 30; INSERT INTO notes VALUES ('after')")
            t.ingest()
            for mode in ("trigger", "wal"):
                for name in ("orders", "notes"):
                    assert lake(t, f"shop_{mode}.{name}") == source(shop, name), (mode, name)
        t.detach("shop_trigger")
        t.detach("shop_wal")


FULL = """
CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"""


@pytest.fixture
def buffer(t: Trickle, shop: Session, dsn: str) -> sql.Identifier:
    """The change buffer of a table that is attached."""
    t.attach_postgres("shop", dsn)
    shop.execute(FULL)
    found = shop.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'changes\\_' || 'notes'::regclass::oid || '\\_%'"
    ).fetchone()
    assert found is not None
    return sql.Identifier("trickle_capture", str(found[0]))


def test_no_room_to_forget(t: Trickle, shop: Session, buffer: sql.Identifier) -> None:
    shop.execute(
        sql.SQL("CREATE TRIGGER no_room BEFORE DELETE ON {} EXECUTE FUNCTION public.full_disk()").format(buffer)
    )
    shop.execute(CHANGES)
    with pytest.raises(SourceUnreachable, match="no room left") as caught:
        t.ingest()
    assert is_clear(caught.value, "SOURCE_UNREACHABLE")
    assert "free disk space" in str(caught.value.hint)
    assert agrees(t, shop), "the lake has it, and knows so"
    shop.execute(sql.SQL("DROP TRIGGER no_room ON {}").format(buffer))
    shop.execute("INSERT INTO notes VALUES ('new')")
    t.ingest()
    assert agrees(t, shop)
    assert [row.rows for row in t.change_buffer_sizes()] == [0, 0]


def test_no_room_to_capture(t: Trickle, shop: Session, buffer: sql.Identifier) -> None:
    """A write that cannot be captured does not happen: that is the price of losing none."""
    shop.execute(
        sql.SQL("CREATE TRIGGER no_room BEFORE INSERT ON {} EXECUTE FUNCTION public.full_disk()").format(buffer)
    )
    with pytest.raises(psycopg.errors.DiskFull):
        shop.execute("INSERT INTO notes VALUES ('lost')")
    shop.execute("UPDATE orders SET amount = 0")
    shop.execute(sql.SQL("DROP TRIGGER no_room ON {}").format(buffer))
    shop.execute("INSERT INTO notes VALUES ('kept')")
    t.ingest()
    assert agrees(t, shop)


def test_no_room_for_the_buffers(t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TriggerCapture, "arm", full)
        with pytest.raises(SourceUnreachable, match="no room left"):
            t.attach_postgres("shop", dsn)
    assert t.list_sources() == []
    t.attach_postgres("shop", dsn)
    assert agrees(t, shop)


def test_a_server_that_is_too_old(t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute(CHANGES)
    with monkeypatch.context() as patch:
        patch.setattr(connect, "OLDEST", 99)
        with pytest.raises(SourceRefused, match="too old") as caught:
            t.ingest()
    assert is_clear(caught.value, "SOURCE_REFUSED")
    t.ingest()
    assert agrees(t, shop)


def test_a_key_that_is_dropped(t: Trickle, shop: Session, dsn: str) -> None:
    """Rows are found by it: without it the table is loaded anew, and duplicates are counted from then on."""
    t.attach_postgres("shop", dsn)
    shop.execute("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    shop.execute("INSERT INTO orders SELECT * FROM orders WHERE id < 4; UPDATE orders SET amount = 0 WHERE id = 1")
    assert [(r.name, r.loaded) for r in t.ingest()] == [("shop.orders", True)]
    assert agrees(t, shop)
    shop.execute("DELETE FROM orders WHERE ctid = (SELECT min(ctid) FROM orders WHERE id = 2)")
    t.ingest()
    assert agrees(t, shop)


def test_a_change_of_a_row_that_is_not_here(t: Trickle, shop: Session, dsn: str) -> None:
    """One table whose replica is not what it should be is loaded anew, and the others go on."""
    t.attach_postgres("shop", dsn)
    shop.execute("ALTER TABLE notes DISABLE TRIGGER ALL; INSERT INTO notes VALUES ('unseen'), ('unseen too')")
    shop.execute("ALTER TABLE notes ENABLE TRIGGER ALL; DELETE FROM notes WHERE body = 'unseen'")
    shop.execute("DELETE FROM orders WHERE id = 1")
    found = {(r.name, r.loaded) for r in t.ingest()}
    assert found == {("shop.orders", False), ("shop.notes", True)}
    assert agrees(t, shop)
    assert [alert.event for alert in t.alerts()] == ["reinitialize_needed"]
    assert t.ingest() == []
