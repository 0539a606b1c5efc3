from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Connection, create_engine, inspect, text

from tests.postgres import Postgres
from trickle.catalog import Catalog, connections, file_url, migrate, urls
from trickle.catalog.models import Base
from trickle.errors import CatalogUnreachable, NewerWarehouse


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "trickle.catalog:migrations")
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def test_the_code_knows_every_revision() -> None:
    revisions = [script.revision for script in scripts().walk_revisions()]
    assert tuple(reversed(revisions)) == migrate.REVISIONS
    assert scripts().get_heads() == [migrate.HEAD]


@pytest.fixture
def plain(url):
    """The migrated database through an engine that knows nothing of Trickle."""
    options = {} if url.startswith("sqlite") else {"connect_args": {"options": "-csearch_path=trickle"}}
    engine = create_engine(urls.parse(url), **options)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_the_migrated_schema_is_that_of_the_models(plain: Connection) -> None:
    context = MigrationContext.configure(plain, opts={"compare_type": True, "compare_server_default": True})
    assert compare_metadata(context, Base.metadata) == []


def test_the_migrated_checks_are_those_of_the_models(plain: Connection, backend: str) -> None:
    inspector = inspect(plain)
    for table in Base.metadata.sorted_tables:
        declared = {str(c.name): str(c.sqltext) for c in table.constraints if isinstance(c, CheckConstraint)}
        stored = {str(c["name"]): c["sqltext"] for c in inspector.get_check_constraints(table.name)}
        assert stored.keys() == declared.keys()
        if backend == "sqlite":
            # PostgreSQL writes expressions in its own words.
            assert stored == declared


def test_on_sqlite_ids_are_never_given_out_twice(sqlite_template: Path) -> None:
    connection = sqlite3.connect(sqlite_template)
    made = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    connection.close()
    for table in Base.metadata.sorted_tables:
        assert ("AUTOINCREMENT" in made[table.name]) == bool(table.dialect_options["sqlite"]["autoincrement"])


def test_on_postgresql_all_tables_are_in_a_schema_of_their_own(postgres_url: str) -> None:
    engine = create_engine(urls.parse(postgres_url))
    inspector = inspect(engine)
    assert inspector.get_table_names(schema="public") == []
    assert set(inspector.get_table_names(schema="trickle")) == {*Base.metadata.tables, "alembic_version"}
    engine.dispose()


def pretend_newer(url: str) -> None:
    prefix = "" if url.startswith("sqlite") else "trickle."
    engine = create_engine(urls.parse(url))
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {prefix}alembic_version SET version_num = '0099'"))
        connection.execute(text(f"UPDATE {prefix}meta SET migrated_by = '9.9.9'"))
    engine.dispose()


def test_a_newer_catalog_is_refused_with_both_versions(empty_url: str) -> None:
    Catalog.open(empty_url).close()
    pretend_newer(empty_url)
    for create in (True, False):
        with pytest.raises(NewerWarehouse) as caught:
            Catalog.open(empty_url, create=create)
    assert "9.9.9" in str(caught.value.detail)
    assert migrate.code_version() in str(caught.value.detail)
    assert "pip install --upgrade" in str(caught.value.hint)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE customers (id INT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(CatalogUnreachable, match="something else") as caught:
        Catalog.open(file_url(path))
    assert caught.value.detail == "its tables: customers"
    assert path.read_bytes() == before


def test_another_programs_alembic_is_not_taken_for_a_newer_trickle(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.executescript(
        "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('ae1027a6acf');"
        "CREATE TABLE customers (id INT);"
    )
    other.close()
    with pytest.raises(CatalogUnreachable, match="something else"):
        Catalog.open(file_url(path))


def test_a_postgresql_database_may_hold_other_schemas(postgres: Postgres) -> None:
    with postgres.database() as url:
        postgres.execute("CREATE TABLE customers (id INT)", str(urls.parse(url).database))
        Catalog.open(url).close()


def test_a_migration_that_fails_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_connection: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(migrate, "_note_migration", fail)
        with pytest.raises(RuntimeError):
            Catalog.open(empty_url)
    engine = create_engine(urls.parse(empty_url))
    schema = None if empty_url.startswith("sqlite") else "trickle"
    with engine.connect() as connection:
        assert inspect(connection).get_table_names(schema=schema) == []
    engine.dispose()
    Catalog.open(empty_url).close()


def test_who_waited_for_a_migration_sees_it(postgres: Postgres) -> None:
    """A backend remembers that a schema was not there, and hears no news while it waits for a lock."""
    with postgres.database() as url:
        engine = connections.postgres_engine(urls.parse(url))
        with engine.begin() as late:
            assert migrate.stored_revision(late) is None
        with engine.begin() as late:
            migrate.lock(late)
            with psycopg.connect(url) as other:
                other.execute("CREATE SCHEMA trickle")
                other.execute("CREATE TABLE trickle.alembic_version AS SELECT '0001' AS version_num")
            migrate.lock(late)
            assert migrate.stored_revision(late) == "0001"
        engine.dispose()
