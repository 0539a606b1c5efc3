"""Sources without history: read whole, and what differs is what changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.postgres import OTHER_VERSION
from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle, connect
from trickle.engine import Engine
from trickle.errors import InvalidData, InvalidOption, SchemaDrift, SourceRefused, TrickleError, UnsupportedTable
from trickle.postgres.connect import connected
from trickle.postgres.tables import describe
from trickle.replicas.source import ranges
from trickle.sources import polling
from trickle.testing.clock import FakeClock


def version(t: Trickle, name: str) -> int | None:
    return next(row.version for row in t.list_sources() if row.name == name)


def test_csv_files_are_compared_with_what_they_were(t: Trickle, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("id,Unit Price,name\n1,1.5,ada\n2,2.5,bob\n2,2.5,bob\n")
    row = t.attach_files("prices", folder, format="csv", schedule="5m")
    assert (row.status, row.source, row.address) == ("ACTIVE", "csv", str(folder))
    t.create_stream_table("total", "SELECT name, SUM(Unit_Price) AS s FROM prices GROUP BY name")
    assert lake(t, "prices") == {(1, 1.5, "ada"): 1, (2, 2.5, "bob"): 2}
    before = version(t, "prices")
    assert t.ingest("prices") == []
    (folder / "a.csv").write_text("id,Unit Price,name\n2,2.5,bob\n1,1.5,ada\n2,2.5,bob\n")
    assert t.ingest() == []
    assert version(t, "prices") == before, "the same rows in another order commit nothing"

    (folder / "b.csv").write_text("id,Unit Price,name\n3,3.0,eve\n")
    (folder / "a.csv").write_text("id,Unit Price,name\n2,2.5,bob\n1,1.75,ada\n")
    t.refresh_stream_table("total")
    assert lake(t, "total") == {("ada", 1.75): 1, ("bob", 2.5): 1, ("eve", 3.0): 1}
    assert t.changes("prices", before or 0).count() == 4

    (folder / "b.csv").write_text("id,Unit Price,name\nthree,3.0,eve\n")
    with pytest.raises(TrickleError):
        t.ingest("prices")
    assert lake(t, "prices") == {(1, 1.75, "ada"): 1, (2, 2.5, "bob"): 1, (3, 3.0, "eve"): 1}, "contents stay"
    assert next(row.last_error for row in t.list_sources()) is not None
    assert [alert.event for alert in t.alerts()] == ["stale_data"]
    assert t.detach("prices", cascade=True) == ["total", "prices"]
    assert t.list_sources() == []


def test_other_columns_are_noticed_before_a_row_is_written(t: Trickle, tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text('{"id": 1, "name": "ada"}\n')
    t.attach_files("people", file, format="json")
    file.write_text('{"id": 1, "name": "ada", "extra": true}\n{"id": 2, "name": "bob", "extra": false}\n')
    assert [(r.rows_inserted, r.rows_deleted) for r in t.ingest("people")] == [(1, 0)], "a new column is ignored"
    file.write_text('{"id": "x", "name": "ada"}\n')
    with pytest.raises(TrickleError):
        t.ingest("people")
    file.write_text('{"id": 1, "nom": "ada"}\n')
    with pytest.raises(SchemaDrift, match="no longer has the columns") as caught:
        t.ingest("people")
    assert caught.value.detail == "column 'name' was string and is missing"
    (row,) = t.list_sources()
    assert (row.status, row.problem) == ("BROKEN", "column 'name' was string and is missing")
    assert lake(t, "people") == {(1, "ada"): 1, (2, "bob"): 1}
    t.sql("SET trickle.on_source_ddl = 'reinitialize'")
    t.ingest("people")
    assert lake(t, "people") == {(1, "ada"): 1}
    assert t.table("people").columns == ["id", "nom"]
    assert [row.status for row in t.list_sources()] == ["ACTIVE"]


def test_parquet_and_options_by_sql(t: Trickle, tmp_path: Path, spark: SparkSession) -> None:
    spark.range(3).write.parquet(str(tmp_path / "p"))
    t.sql(f"CALL trickle.attach_files('ids', '{tmp_path / 'p'}')")
    assert lake(t, "ids") == {(0,): 1, (1,): 1, (2,): 1}
    (tmp_path / "semi.csv").write_text("1;x\n2;y\n")
    t.sql(
        f"CALL trickle.attach_files('semi', '{tmp_path / 'semi.csv'}', format => 'csv',"
        " options => 'header=false, sep=;', schedule => '30s')"
    )
    assert lake(t, "semi") == {(1, "x"): 1, (2, "y"): 1}
    spark.range(1, 4).write.mode("overwrite").parquet(str(tmp_path / "p"))
    assert [(r.name, r.rows_inserted, r.rows_deleted) for r in t.ingest()] == [("ids", 1, 1)]
    with pytest.raises(InvalidOption, match="a duration of at least one second"):
        t.attach_files("never", tmp_path / "p", schedule="now and then")
    with pytest.raises(TrickleError):
        t.attach_files("none", tmp_path / "nowhere", format="csv")
    assert [row.name for row in t.list_sources()] == ["ids", "semi"]


ROWS: list[tuple[int, str]] = []


def rates(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id INT, name STRING")


def test_a_function_gives_the_rows(t: Trickle, engine: Engine) -> None:
    ROWS[:] = [(1, "a"), (1, "a")]
    row = t.attach_function("rates", rates)
    assert row.source == "tests.replicas.test_polling:rates"
    assert lake(t, "rates") == {(1, "a"): 2}
    ROWS[:] = [(1, "a"), (2, "b")]
    with connect(t.warehouse.root.uri, spark=engine.spark) as other:
        assert [(r.rows_inserted, r.rows_deleted) for r in other.ingest("rates")] == [(1, 1)]
    ROWS.clear()
    t.ingest("rates")
    assert lake(t, "rates") == {}
    with pytest.raises(InvalidOption, match="returned no DataFrame"):
        t.attach_function("wrong", lambda _: 1)  # type: ignore[arg-type,return-value]  # the mistake in question
    with pytest.raises(InvalidOption, match="no function 'nowhere:f'"):
        t.attach_function("wrong", "nowhere:f")


def test_a_local_function_is_told_to_be_unknown_elsewhere(t: Trickle) -> None:
    t.attach_function("here", lambda spark: spark.range(1).selectExpr("CAST(id AS INT) AS id"))
    polling._here.clear()
    with pytest.raises(SourceRefused, match="is not known to this process"):
        t.ingest("here")


def test_ticks_poll_on_schedule(engine: Engine, tmp_path: Path) -> None:
    clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
    with connect(tmp_path / "wh", spark=engine.spark, clock=clock) as t:
        ROWS[:] = [(1, "a")]
        t.attach_function("rates", rates, schedule="5m")
        t.create_stream_table("names", "SELECT name FROM rates", schedule="1s")
        ROWS[:] = [(1, "a"), (2, "b")]
        clock.advance(timedelta(minutes=4))
        assert t.tick() == []
        clock.advance(timedelta(minutes=1))
        assert [result.name for result in t.tick()] == ["names"]
        assert lake(t, "names") == {("a",): 1, ("b",): 1}


def test_views_materialized_views_and_foreign_tables_of_a_database(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("CREATE MATERIALIZED VIEW mat AS SELECT customer, count(*) AS n FROM orders GROUP BY 1")
    shop.execute("CREATE VIEW seen AS SELECT id, amount FROM orders WHERE id <= 3")
    with pytest.raises(UnsupportedTable):
        t.attach_postgres("shop", dsn, tables=["mat"])
    with pytest.raises(InvalidOption, match="a schedule is for"):
        t.attach_postgres("shop", dsn, tables=["orders"], schedule="5m")
    rows = t.attach_postgres("shop", dsn, tables=["mat", "seen", "notes"], cdc_mode="polling", schedule="1h")
    assert [row.status for row in rows] == ["ACTIVE"] * 3
    assert lake(t, "shop.mat") == source(shop, "mat")
    assert {row.state for row in t.cdc_status()} == {"POLLING"}
    assert shop.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)
    assert t.ingest() == []
    shop.execute(
        "UPDATE orders SET amount = 0 WHERE id = 2; INSERT INTO notes VALUES ('a'); DELETE FROM orders WHERE id > 48"
    )
    shop.execute("REFRESH MATERIALIZED VIEW mat")
    results = {row.name: (row.rows_inserted, row.rows_deleted) for row in t.ingest("shop")}
    assert results == {"shop.mat": (2, 2), "shop.notes": (1, 0), "shop.seen": (1, 1)}
    for name in ("mat", "seen", "notes"):
        assert lake(t, f"shop.{name}") == source(shop, name)
    shop.execute("INSERT INTO notes VALUES ('later')")
    t.tick()
    assert lake(t, "shop.notes") != source(shop, "notes"), "an hour has not passed"
    shop.execute("DROP VIEW seen; CREATE VIEW seen AS SELECT 1 AS one")
    shop.execute("ALTER TABLE notes ALTER COLUMN body TYPE varchar(9)")
    t.ingest()
    assert {row.name: row.status for row in t.list_sources()} == {
        "shop.mat": "ACTIVE",
        "shop.notes": "BROKEN",
        "shop.seen": "BROKEN",
    }
    t.detach("shop")


def test_a_foreign_table_is_read_in_one_piece(shop: Session, dsn: str) -> None:
    shop.execute("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w")
    shop.execute("CREATE FOREIGN TABLE far (a int) SERVER s")
    with connected(dsn) as connection:
        (piece,) = ranges(connection, describe(connection, "public", "far"))
        assert piece.where.as_string(connection) == "true", "it has no pages"


if OTHER_VERSION:

    def test_a_foreign_table_is_polled(t: Trickle, shop: Session, dsn: str) -> None:
        """The PostgreSQL of the test run comes without wrappers; others have them."""
        shop.execute("CREATE EXTENSION postgres_fdw")
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
        place = f"host '{parts['host']}', dbname '{parts['dbname']}'"
        shop.execute(f"CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({place})")
        shop.execute("CREATE USER MAPPING FOR postgres SERVER self OPTIONS (user 'postgres')")
        shop.execute("CREATE FOREIGN TABLE far (body text) SERVER self OPTIONS (table_name 'notes')")
        t.attach_postgres("shop", dsn, tables=["far"], cdc_mode="polling")
        shop.execute("DELETE FROM notes WHERE body = 'a'")
        t.ingest()
        assert lake(t, "shop.far") == source(shop, "notes")


def test_values_that_do_not_fit_are_refused(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("CREATE VIEW times AS SELECT 'infinity'::timestamp AS at")
    with pytest.raises(InvalidData, match="column 'at'"):
        t.attach_postgres("shop", dsn, tables=["times"], cdc_mode="polling")
