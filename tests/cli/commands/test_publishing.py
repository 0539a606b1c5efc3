from __future__ import annotations

from pathlib import Path

import psycopg

from tests.cli.runner import Cli
from tests.postgres import Postgres


def test_a_stream_table_is_published_and_withdrawn(shop: Cli, postgres: Postgres) -> None:
    with postgres.database() as dsn:
        assert shop("publications").out.startswith("nothing is published")
        published = shop("publish", "per_customer", dsn, "--table", "public.totals")
        assert published.out.startswith("per_customer is published to public.totals at postgresql://"), published.err
        (row,) = shop.document("publications")
        assert (row["name"], row["status"]) == ("per_customer", "CURRENT")
        shop("sql", "INSERT INTO orders VALUES (4, 'eve', 1)")
        shop("refresh", "per_customer")
        with psycopg.connect(dsn) as there:
            assert ("eve",) in there.execute("SELECT customer FROM totals").fetchall()
        assert shop("publish", "per_customer", dsn, "-t", "no.where", "--json").error["code"] == "INVALID_OPTION"
        assert shop("publish", "per_customer", dsn, "-t", "other", "-k", "customer").code == 2, "one customer is NULL"
        gone = shop("unpublish", "per_customer", "--drop")
        assert gone.out == "per_customer is no longer published to public.totals\n"
        assert shop.document("publications") == []


def test_files_are_attached_and_read_again(shop: Cli, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("1;x\n")
    arguments = ("--format", "csv", "--schedule", "5m", "-o", "header=false", "-o", "sep=;")
    made = shop.document("attach", "inbox", str(file), *arguments)
    assert (made["name"], made["source"], made["status"]) == ("inbox", "csv", "ACTIVE")
    file.write_text("1;x\n2;y\n")
    assert [row["rows_inserted"] for row in shop.document("ingest", "inbox")] == [1]
    assert "inbox" in shop("sources").out
    assert shop("detach", "inbox").out == "detached inbox\n"
