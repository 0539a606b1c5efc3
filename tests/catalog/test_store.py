from __future__ import annotations

import gc
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.catalog.given import Given
from tests.postgres import Postgres
from trickle.algebra.names import TableName
from trickle.catalog import Catalog, connections, file_url, migrate, relations, streams
from trickle.errors import CatalogUnreachable, ConcurrentModification, InternalError, TrickleError, WarehouseMissing


def test_a_catalog_is_made_once_and_found_again(empty_url: str, backend: str) -> None:
    first = Catalog.open(empty_url)
    made = first.meta()
    first.close()
    again = Catalog.open(empty_url, create=False)
    assert again.backend == backend
    assert again.meta() == made
    again.close()
    assert made.format_version == migrate.FORMAT_VERSION
    assert made.created_by == made.migrated_by != ""
    assert made.created_at.tzinfo is not None


def test_without_create_a_missing_catalog_is_an_error(empty_url: str) -> None:
    for _ in range(2):
        with pytest.raises(WarehouseMissing) as caught:
            Catalog.open(empty_url, create=False)
    assert "trickle init" in str(caught.value.hint)


def test_an_empty_file_is_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    with pytest.raises(WarehouseMissing):
        Catalog.open(file_url(tmp_path / "catalog.db"), create=False)
    Catalog.open(file_url(tmp_path / "catalog.db")).close()


def test_any_path_can_hold_a_catalog(tmp_path: Path) -> None:
    folder = tmp_path / "50% off? #1 'ü' @:x"
    folder.mkdir()
    Catalog.open(file_url(folder / "catalog.db")).close()
    assert (folder / "catalog.db").is_file()
    Catalog.open(file_url(folder / "catalog.db"), create=False).close()


def test_a_failed_write_leaves_nothing(catalog: Catalog, given: Given) -> None:
    with pytest.raises(ZeroDivisionError), catalog.write() as tx:
        given.table(tx, "orders")
        raise ZeroDivisionError
    with catalog.read() as tx:
        assert relations.listing(tx) == []


def test_a_reader_sees_one_moment(catalog: Catalog, given: Given) -> None:
    """A unit of two tables changes while a reader is half-way through it."""
    with catalog.write() as tx:
        a, b = (given.stream(tx, name).relation.id for name in "ab")
    with catalog.read() as reader:
        before = streams.by_id(reader, a).version
        with catalog.write() as tx:
            for table in (a, b):
                streams.update(tx, table, now=given.now, version=1)
        assert before is None
        assert streams.by_id(reader, b).version is None
        assert streams.by_id(reader, a).version is None
    with catalog.read() as reader:
        assert [table.version for table in streams.listing(reader)] == [1, 1]


def test_a_reader_does_not_wait_for_a_writer(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
        with catalog.read() as reader:
            assert relations.listing(reader) == []


def test_a_reader_cannot_write(catalog: Catalog, given: Given) -> None:
    with pytest.raises(InternalError, match="read transaction"), catalog.read() as tx:
        given.table(tx, "orders")
    # The same connection writes again afterwards.
    with catalog.write() as tx:
        given.table(tx, "orders")


def test_a_transaction_reads_its_own_writes(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.table(tx, "orders", comment="a")
        held = relations.by_id(tx, table.id)
        relations.update(tx, table.id, now=given.now, comment="b")
        assert (held.comment, relations.by_id(tx, table.id).comment) == ("a", "b")


def test_a_row_that_points_nowhere_is_a_conflict(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.stream(tx, "total")
    with pytest.raises(ConcurrentModification), catalog.write() as tx:
        tx.execute(text(f"UPDATE {prefix(catalog)}stream_tables SET relation_id = 999"))


def test_a_broken_rule_is_a_defect(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.stream(tx, "total")
    for wrong in ("status = 'ODD'", "refresh_number = -1", "nonsense = 1"):
        with pytest.raises(InternalError), catalog.write() as tx:
            tx.execute(text(f"UPDATE {prefix(catalog)}stream_tables SET {wrong}"))


def prefix(catalog: Catalog) -> str:
    return "" if catalog.backend == "sqlite" else "trickle."


def test_a_writer_gives_up_on_one_that_hangs(url: str, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 0.2)
    catalog, other = Catalog.open(url), Catalog.open(url)
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    with catalog.write() as tx:
        streams.lock(tx, total)
        with pytest.raises(CatalogUnreachable, match="is busy"), other.write() as late:
            streams.lock(late, total)
        streams.update(tx, total, now=given.now, populated=True)
    with other.read() as tx:
        assert streams.by_id(tx, total).populated
    catalog.close()
    other.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(CatalogUnreachable):
        Catalog.open(file_url(path))
    assert path.read_bytes() == b"not a database" * 100


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnreachable):
        Catalog.open(file_url(tmp_path / "missing" / "catalog.db"))
    assert not (tmp_path / "missing").exists()


SECRET = "hunter2"


@pytest.mark.parametrize("case", ["no server", "wrong password", "wrong parameter", "no database", "no role"])
def test_an_unreachable_server_is_named_without_the_password(postgres: Postgres, locked_role: str, case: str) -> None:
    url = {
        "no server": postgres.url("postgres", password=SECRET, port=1),
        "wrong password": postgres.url("postgres", user=locked_role, password=SECRET),
        "wrong parameter": postgres.url("postgres", user=locked_role) + f"&password={SECRET}",
        "no database": postgres.url("nowhere", password=SECRET),
        "no role": postgres.url("postgres", user="nobody_here", password=SECRET),
    }[case]
    with pytest.raises(CatalogUnreachable) as caught:
        Catalog.open(url)
    assert "does not answer" in caught.value.message
    assert "postgresql://" in caught.value.message
    assert not any(SECRET in said for said in told(caught.value))


def told(error: TrickleError) -> list[str]:
    """Everything that a log or a traceback would show."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    return [f"{link} {link!r}" for link in chain]


@pytest.fixture(scope="session")
def locked_role(postgres) -> str:
    """A role that needs a password."""
    postgres.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    rules = postgres.data / "pg_hba.conf"
    rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
    postgres.execute("SELECT pg_reload_conf()")
    return "locked"


def test_a_role_that_may_not_create_a_schema(postgres: Postgres, locked_role: str) -> None:
    with pytest.raises(CatalogUnreachable) as caught, postgres.database() as url:
        Catalog.open(url.replace("postgres@", f"{locked_role}:right@"))
    assert "permission denied" in str(caught.value.detail)


def test_a_connection_that_dies_is_transient(postgres: Postgres, postgres_url: str, given: Given) -> None:
    catalog = Catalog.open(postgres_url)
    with pytest.raises(CatalogUnreachable), catalog.write() as tx:
        given.table(tx, "orders")
        pid = tx.execute(text("SELECT pg_backend_pid()")).scalar_one()
        postgres.execute(f"SELECT pg_terminate_backend({pid})")
        given.table(tx, "lines")
    # The next transaction finds a connection of its own, and nothing half-done.
    with catalog.write() as tx:
        assert relations.listing(tx) == []
        given.table(tx, "orders")
    # One that dies while it idles in the pool is not even noticed.
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'trickle' AND state = 'idle'"
    )
    with catalog.read() as tx:
        assert relations.find(tx, TableName.of(["orders"])) is not None
    catalog.close()


def test_no_statement_is_prepared(postgres_url: str) -> None:
    """A pooler in transaction mode hands the next transaction to another backend."""
    catalog = Catalog.open(postgres_url)
    for _ in range(20):
        with catalog.write() as tx:
            relations.listing(tx)
            assert tx.execute(text("SELECT count(*) FROM pg_prepared_statements")).scalar() == 0
    catalog.close()


def test_isolation_of_both_kinds_of_transaction(postgres_url: str) -> None:
    catalog = Catalog.open(postgres_url)
    shown = text("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")
    for _ in range(2):
        with catalog.read() as tx:
            assert tuple(tx.execute(shown).one()) == ("repeatable read", "on")
        with catalog.write() as tx:
            assert tuple(tx.execute(shown).one()) == ("read committed", "off")
    catalog.close()


def test_a_sqlite_catalog_survives_a_power_cut(sqlite_template: Path, tmp_path: Path) -> None:
    """An intent must be on disk before the first Delta commit."""
    catalog = Catalog.open(file_url(sqlite_template))
    with catalog.write() as tx:
        pragmas = {
            name: tx.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    catalog.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_opening_and_using_a_catalog_is_quick(tmp_path: Path, given: Given) -> None:
    url = file_url(tmp_path / "catalog.db")
    catalog = Catalog.open(url)
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    catalog.close()

    def open_and_close() -> None:
        Catalog.open(url).close()

    def read_and_write() -> None:
        with catalog.read() as tx:
            streams.by_id(tx, total)
        with catalog.write() as tx:
            streams.update(tx, total, now=given.now, populated=True)

    assert best_ms(open_and_close) < 10
    assert best_ms(read_and_write) < 5
    catalog.close()


def best_ms(act) -> float:
    """The best of several runs: the others share the machine with somebody."""
    gc.collect()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        act()
        times.append((time.perf_counter() - start) * 1000)
    return min(times)
