"""Attached PostgreSQL databases on the command line: attach, sources, ingest, detach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from tests.cli.runner import Cli
from tests.postgres import Postgres
from tests.postgres.conftest import dsn as dsn

Session = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def source(dsn: str) -> Iterator[Session]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text)")
        connection.execute("CREATE TABLE lines (item text)")
        connection.execute("INSERT INTO orders VALUES (1, 'ada'), (2, 'bob'); INSERT INTO lines VALUES ('pen')")
        yield connection


@pytest.fixture
def attached(cli: Cli, source: Session, dsn: str) -> Cli:
    assert cli("attach", "shop", dsn).code == 0
    return cli


def test_attach_names_what_it_attached(cli: Cli, source: Session, dsn: str) -> None:
    assert cli.document("attach", "shop", dsn, "--table", "orders") == {
        "message": "attached shop",
        "tables": ["shop.orders"],
    }
    assert cli("attach", "shop", dsn, "-t", "lines", "--schema", "public").out == "attached shop.lines\n"
    assert [row["name"] for row in cli.document("sources")] == ["shop.lines", "shop.orders"]
    assert {row["cdc_mode"] for row in cli.document("sources", "--status")} == {"auto"}


def test_sources_are_listed_without_passwords(cli: Cli, source: Session, dsn: str) -> None:
    secret = dsn.replace("postgres@", "postgres:s3cret@")
    assert cli("attach", "shop", secret, "--cdc-mode", "trigger").code == 0
    ran = cli("sources")
    assert ran.code == 0
    assert "public.orders" in ran.out
    assert "postgres:***@" in ran.out
    told = [ran.out, cli("sources", "--json").out, cli("sources", "--health").out]
    assert not any("s3cret" in text for text in told)


def test_without_sources_the_next_step_is_named(cli: Cli) -> None:
    assert "trickle attach NAME postgresql://" in cli("sources").out
    assert cli.document("sources") == []
    assert cli("ingest").out == "nothing has changed\n"


def test_ingest_tells_what_moved(attached: Cli, source: Session, spark: SparkSession) -> None:
    source.execute("UPDATE orders SET customer = 'eve' WHERE id = 1; INSERT INTO lines VALUES ('ink'), ('ink')")
    moved = {row["name"]: (row["rows_inserted"], row["rows_deleted"]) for row in attached.document("ingest", "shop")}
    assert moved == {"shop.orders": (1, 1), "shop.lines": (2, 0)}
    assert attached("ingest").out == "nothing has changed\n"
    rows = attached.document("table", "shop.orders")
    assert sorted((row["id"], row["customer"]) for row in rows) == [(1, "eve"), (2, "bob")]


def test_health_asks_the_server(attached: Cli, source: Session) -> None:
    assert {row["state"] for row in attached.document("sources", "--health")} == {"OK"}
    source.execute("ALTER TABLE lines DISABLE TRIGGER USER")
    found = {row["source"]: (row["state"], row["message"]) for row in attached.document("sources", "--health")}
    assert found["public.orders"][0] == "OK"
    assert found["public.lines"][0] == "CRITICAL"
    assert "missing or disabled" in found["public.lines"][1]


def test_detach_leaves_nothing_behind(attached: Cli, source: Session) -> None:
    assert attached.document("detach", "shop", "--table", "lines") == {"detached": ["shop.lines"]}
    assert attached("detach", "shop").out == "detached shop.orders\n"
    assert attached.document("sources") == []
    assert source.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)


def test_detach_of_what_is_read_needs_cascade(attached: Cli, spark: SparkSession) -> None:
    assert attached("create", "names", "SELECT customer FROM shop.orders").code == 0
    ran = attached("detach", "shop", "--json")
    assert (ran.code, ran.error["code"]) == (2, "DEPENDENTS_EXIST")
    assert set(attached.document("detach", "shop", "--cascade")["detached"]) == {"shop.lines", "shop.orders", "names"}


def test_a_server_that_is_away(attached: Cli, postgres: Postgres, dsn: str) -> None:
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    postgres.refuse(database)
    try:
        ran = attached("ingest", "--json")
        assert (ran.code, ran.error["code"]) == (4, "SOURCE_UNREACHABLE")
        assert [row["state"] for row in attached.document("sources", "--health")] == ["CRITICAL"]
        assert attached("detach", "shop", "--json").code == 4
        assert attached("detach", "shop", "--force").code == 0
    finally:
        postgres.admit(database)


@pytest.mark.parametrize(
    "line, code",
    [
        (("attach", "shop", "postgresql://nobody@/x?host=/nowhere"), "SOURCE_UNREACHABLE"),
        (("attach", "shop", "postgresql://a:s3cret@db:port?=/"), "INVALID_OPTION"),
        (("ingest", "nowhere"), "INVALID_OPTION"),
        (("detach", "nowhere"), "INVALID_OPTION"),
    ],
)
def test_what_goes_wrong_has_a_code(cli: Cli, line: tuple[str, ...], code: str) -> None:
    ran = cli(*line, "--json")
    assert ran.error["code"] == code
    assert ran.code != 0
    assert "s3cret" not in ran.err
