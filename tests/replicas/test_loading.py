from __future__ import annotations

import itertools
import os
import threading
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.errors import ConcurrentModification, InvalidData
from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import SourceTable, describe
from trickle.replicas import loading
from trickle.replicas import source as reading
from trickle.replicas.loading import exported
from trickle.replicas.source import Range, begin_at, ranges, read_range, stored_bytes
from trickle.sources.postgres.buffers import TriggerCapture

LOAD_ROWS = int(os.environ.get("TRICKLE_LOAD_ROWS", "50000"))


@pytest.fixture
def tiny_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is read by several Spark tasks."""
    monkeypatch.setattr(loading, "ranges", lambda connection, table: ranges(connection, table, pages=3))
    monkeypatch.setattr(loading, "DRIVER_BYTES", -1)


def test_ranges_cover_every_page_once(shop: Session, dsn: str) -> None:
    shop.execute("CREATE TABLE p (id int, part int) PARTITION BY LIST (part)")
    for number in (1, 2, 3):
        shop.execute(
            sql.SQL("CREATE TABLE {} PARTITION OF p FOR VALUES IN ({})").format(sql.Identifier(f"p{number}"), number)
        )
    shop.execute("INSERT INTO p SELECT g, g % 2 + 1 FROM generate_series(1, 5000) g")
    with connected(dsn) as connection:
        table = describe(connection, "public", "p")
        pieces = ranges(connection, table, pages=4)
        assert len(pieces) > 5
        assert Range("public", "p3", 0, None) in pieces
        found = [
            row["id"] for piece in pieces for rows in read_range(connection, table, piece) for row in rows.to_pylist()
        ]
    assert sorted(found) == list(range(1, 5001))


def test_long_values_and_views_do_not_come_to_the_driver(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE TABLE docs (id int PRIMARY KEY, body text); ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    shop.execute("INSERT INTO docs SELECT g, repeat('x', 400000) || g FROM generate_series(1, 100) g")
    shop.execute("CREATE VIEW seen AS SELECT * FROM orders")
    read_here = []
    real = loading._on_driver

    def on_driver(connection: Connection, table: SourceTable, *given: Any) -> Any:
        read_here.append(table.name)
        return real(connection, table, *given)

    monkeypatch.setattr(loading, "_on_driver", on_driver)
    with connected(dsn) as connection:
        docs = describe(connection, "public", "docs")
        size = stored_bytes(connection, docs)
        assert size is not None
        assert size > loading.DRIVER_BYTES
        assert stored_bytes(connection, describe(connection, "public", "seen")) is None
    t.attach_postgres("shop", dsn, tables=["docs", "orders", "seen"], cdc_mode="polling")
    assert read_here == ["orders"]
    assert lake(t, "shop.seen") == source(shop, "seen")
    found = t.table("shop.docs").selectExpr("count(DISTINCT body)", "sum(length(body))").collect()[0]
    assert tuple(found) == shop.execute("SELECT count(DISTINCT body), sum(length(body)) FROM docs").fetchone()


def test_ranges_count_the_pages_of_long_values(shop: Session, dsn: str) -> None:
    shop.execute("CREATE TABLE docs (id int, body text); ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    shop.execute("INSERT INTO docs SELECT g, repeat('x', 10000) || g FROM generate_series(1, 1000) g")
    with connected(dsn) as connection:
        pieces = ranges(connection, describe(connection, "public", "docs"), pages=400)
    assert len(pieces) >= 3
    assert (pieces[0].first, pieces[-1].last) == (0, None)
    assert all(one.last == other.first for one, other in itertools.pairwise(pieces))


@pytest.mark.portable
def test_spark_tasks_read_inside_one_snapshot(t: Trickle, shop: Session, dsn: str, tiny_ranges: None) -> None:
    shop.execute(
        "CREATE TABLE kinds (id int PRIMARY KEY, n numeric(38,10), at timestamptz, tags text[], raw bytea, j jsonb)"
    )
    shop.execute(
        "INSERT INTO kinds SELECT g, g / 7.0, '2024-01-01'::timestamptz + g * interval '1 min',"
        " ARRAY['a,' || g, NULL], decode(lpad(to_hex(g), 8, '0'), 'hex'), jsonb_build_object('k', g)"
        " FROM generate_series(1, 2000) g"
    )
    t.attach_postgres("shop", dsn, tables=["kinds", "orders"])
    assert lake(t, "shop.orders") == source(shop, "orders")
    found = t.table("shop.kinds").selectExpr(
        "count(*)", "sum(n)", "max(unix_seconds(at))", "sum(size(tags))", "max(hex(raw))", "max(tags[0])", "max(j)"
    )
    expected = shop.execute(
        "SELECT count(*), sum(n), max(extract(epoch FROM at))::bigint, sum(cardinality(tags)),"
        ' upper(max(encode(raw, \'hex\'))), max(tags[1] COLLATE "C"), max(j::text COLLATE "C") FROM kinds'
    ).fetchone()
    assert tuple(found.collect()[0]) == expected
    shop.execute("UPDATE kinds SET tags = '{}', n = -n WHERE id <= 3; DELETE FROM kinds WHERE id = 4")
    t.ingest()
    left = t.table("shop.kinds").where("id <= 4").select("id", "n", "tags").collect()
    assert sorted((row.id, row.tags) for row in left) == [(1, []), (2, []), (3, [])]
    assert all(row.n < 0 for row in left)


def test_nobody_moves_rows_between_two_ranges(shop: Session, dsn: str) -> None:
    shop.execute("CREATE TABLE p (id int, part int) PARTITION BY LIST (part)")
    shop.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    shop.execute("INSERT INTO p SELECT g, 1 FROM generate_series(1, 5000) g; DELETE FROM p WHERE id <= 2500")
    shop.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM p")
    with connected(dsn) as connection:
        tables = [describe(connection, "public", name) for name in ("orders", "p", "m")]
    moves = ("VACUUM FULL p1", "VACUUM FULL orders", "REFRESH MATERIALIZED VIEW m", "ALTER TABLE p1 RENAME TO p2")
    shop.execute("SET lock_timeout = '100ms'")
    with exported(dsn, tables):
        for move in moves:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                shop.execute(move)
    for move in moves:
        shop.execute(move)


def test_a_task_does_not_wait_for_who_waits_for_the_load(
    shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOCK_WAIT", "200ms")
    with connected(dsn) as connection:
        table = describe(connection, "public", "orders")
    mover = threading.Thread(target=shop.execute, args=("VACUUM FULL orders",))
    with exported(dsn, [table]) as (driver, name, _):
        mover.start()
        while driver.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is None:
            pass
        (piece,) = ranges(driver, table)
        with pytest.raises(ConcurrentModification), connected(dsn) as task:
            begin_at(task, name)
            list(read_range(task, table, piece))
    mover.join(30)
    assert not mover.is_alive()


def test_another_table_of_the_same_name_is_not_loaded(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE TABLE other (body text); INSERT INTO other VALUES ('not mine')")
    real = TriggerCapture.arm

    def swap(self: TriggerCapture, table: SourceTable) -> None:
        real(self, table)
        shop.execute("ALTER TABLE notes RENAME TO gone; ALTER TABLE other RENAME TO notes")

    with monkeypatch.context() as patch:
        patch.setattr(TriggerCapture, "arm", swap)
        with pytest.raises(ConcurrentModification, match="about to be loaded"):
            t.attach_postgres("shop", dsn, tables=["notes"])
    assert t.list_sources() == []
    t.attach_postgres("shop", dsn, tables=["gone"])
    assert lake(t, "shop.gone") == source(shop, "gone")


def test_an_error_of_a_task_is_told_as_it_is(t: Trickle, shop: Session, dsn: str, tiny_ranges: None) -> None:
    shop.execute("CREATE TABLE days (d date); INSERT INTO days VALUES ('2024-01-01'), ('-infinity')")
    with pytest.raises(InvalidData, match="column 'd'") as caught:
        t.attach_postgres("shop", dsn, tables=["days"])
    assert "'-infinity'" in str(caught.value.detail)
    assert t.list_sources() == []


def test_names_that_the_lake_cannot_hold(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute('CREATE TABLE "Order Lines" ("Unit Price" int, "unit price" int, "a=b" text PRIMARY KEY)')
    shop.execute("""INSERT INTO "Order Lines" VALUES (1, 2, 'x')""")
    t.attach_postgres("shop", dsn, tables=["Order Lines"])
    frame = t.table("shop.`Order Lines`")
    assert frame.columns == ["Unit_Price", "unit_price_2", "a_b"]
    shop.execute("""UPDATE "Order Lines" SET "unit price" = 3""")
    t.ingest()
    assert [tuple(row) for row in t.table("shop.`Order Lines`").collect()] == [(1, 3, "x")]


def test_columns_that_are_computed_at_every_read_are_left_out(t: Trickle, shop: Session, dsn: str) -> None:
    if shop.info.server_version < 180_000:
        pytest.skip("virtual columns came with PostgreSQL 18")
    shop.execute(
        "CREATE TABLE g (a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL, s int GENERATED ALWAYS AS (a * 3) STORED)"
    )
    t.attach_postgres("shop", dsn, tables=["g"])
    shop.execute("INSERT INTO g (a) VALUES (1)")
    t.ingest()
    assert t.table("shop.g").columns == ["a", "s"]
    assert lake(t, "shop.g") == {(1, 3): 1}


def test_no_gap_and_no_overlap_under_writers(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come, change and go while the table is loaded by Spark tasks."""
    monkeypatch.setattr(loading, "DRIVER_BYTES", -1)
    monkeypatch.setattr(loading, "ranges", lambda connection, table: ranges(connection, table, pages=64))
    shop.execute("CREATE TABLE big (id int PRIMARY KEY, v int)")
    shop.execute(sql.SQL("INSERT INTO big SELECT g, 0 FROM generate_series(1, {}) g").format(LOAD_ROWS))
    stop = threading.Event()
    failures: list[Exception] = []

    def write(seed: int) -> None:
        try:
            with psycopg.connect(dsn) as mine:
                number = seed
                while not stop.is_set():
                    number = (number * 7919 + 13) % LOAD_ROWS
                    mine.execute("UPDATE big SET v = v + 1 WHERE id = %s", (number,))
                    mine.execute("DELETE FROM big WHERE id = %s", (number + 1,))
                    mine.execute("INSERT INTO big VALUES (%s, 1) ON CONFLICT DO NOTHING", (LOAD_ROWS + number,))
                    mine.rollback() if number % 5 == 0 else mine.commit()
        except Exception as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    t.attach_postgres("shop", dsn, tables=["big"])
    t.ingest()
    stop.set()
    for writer in writers:
        writer.join()
    t.ingest()
    assert failures == []
    assert summed(t) == summed_at(shop)


def summed(t: Trickle) -> tuple[Any, ...]:
    query = "SELECT count(*), sum(id), sum(v), sum(CAST(id AS BIGINT) * v), count(DISTINCT id) FROM shop.big"
    frame = t.sql(query)
    return tuple(frame.collect()[0])  # type: ignore[union-attr]  # a query


def summed_at(shop: Session) -> tuple[Any, ...] | None:
    query = "SELECT count(*), sum(id), sum(v), sum(id::bigint * v), count(DISTINCT id) FROM big"
    return shop.execute(query).fetchone()


def test_the_address_is_not_in_the_plan(
    t: Trickle, shop: Session, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with connected(dsn) as connection:
        table = describe(connection, "public", "notes")
    plan = reading.plan_of("postgresql://ada:s3cret@db/x", "1", table, [])
    frame = loading._in_spark(t.warehouse, plan, loading.lake_schema(table))
    frame.explain(True)
    assert "s3cret" not in capsys.readouterr().out
