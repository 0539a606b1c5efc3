"""The catalogs that earlier versions left behind open with this version, and nothing in them is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.catalog.given import Given, named
from tests.postgres import Postgres
from trickle.catalog import (
    Action,
    Catalog,
    Dependency,
    IntentMember,
    Kind,
    Outcome,
    RefreshMode,
    Severity,
    Status,
    alerts,
    file_url,
    fuses,
    groups,
    history,
    intents,
    jobs,
    leases,
    migrate,
    models,
    preferences,
    relations,
    scheduling,
    source_gates,
    streams,
    urls,
    watermarks,
)

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
ORDERS, EVENTS, RECENT, TOTAL, BROKEN = 1, 2, 3, 4, 5


@pytest.fixture(params=["catalog-v1", "catalog-v2", "catalog-v3"])
def folder(request: pytest.FixtureRequest) -> Path:
    return FIXTURES / str(request.param)


@pytest.fixture
def stored(folder: Path, backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    if backend == "sqlite":
        catalog = Catalog.open(file_url(Path(shutil.copy(folder / "catalog.db", tmp_path))), create=False)
        yield catalog
        catalog.close()
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        server.execute((folder / "dump.sql").read_text(), str(urls.parse(url).database))
        catalog = Catalog.open(url, create=False)
        yield catalog
        catalog.close()


def test_it_is_the_same_warehouse(stored: Catalog) -> None:
    meta = stored.meta()
    assert (meta.warehouse_id, meta.created_by, meta.created_at) == ("77" * 16, "0.1.0", NOON)
    assert meta.format_version == migrate.FORMAT_VERSION


def test_every_table_of_version_1_has_rows(stored: Catalog) -> None:
    made_later = {"alert_cursors", "databases", "hosted", "pins", "polled", "publications", "replicas", "user_gates"}
    with stored.read() as tx:
        counts = {
            table.name: tx.execute(select(func.count()).select_from(table)).scalar_one()
            for table in models.Base.metadata.sorted_tables
            if table.name not in made_later
        }
    assert all(counts.values()), counts


def test_relations_are_there(stored: Catalog) -> None:
    with stored.read() as tx:
        found = {relation.id: relation for relation in relations.listing(tx)}
        read = relations.dependencies(tx, TOTAL)
    assert {number: (str(relation.name), relation.kind) for number, relation in found.items()} == {
        ORDERS: ("Sales.Orders", Kind.TABLE),
        EVENTS: ("events", Kind.ATTACHED),
        RECENT: ("`odd ``name``; --`", Kind.VIEW),
        TOTAL: ("total", Kind.STREAM_TABLE),
        BROKEN: ("broken", Kind.STREAM_TABLE),
    }
    assert (found[ORDERS].key, found[ORDERS].comment) == (("id",), "every order, it's all here: 🦆")
    assert (found[EVENTS].location, found[EVENTS].storage_options) == ("s3://bucket/events", {"AWS_REGION": "eu-1"})
    assert found[RECENT].query == "SELECT * FROM Sales.Orders"
    assert read == [
        Dependency(TOTAL, ORDERS, Kind.TABLE, ("id", "amount"), "f1f1", direct=False),
        Dependency(TOTAL, EVENTS, Kind.ATTACHED, ("id",), "e2e2"),
        Dependency(TOTAL, RECENT, Kind.VIEW, ("id", "amount")),
    ]


def test_stream_tables_stand_where_they_stood(stored: Catalog) -> None:
    with stored.read() as tx:
        total, broken = streams.get(tx, named("total")), streams.get(tx, named("broken"))
    assert (total.status, total.populated, total.version, total.refresh_number) == (Status.ACTIVE, True, 3, 2)
    assert total.frontier == {ORDERS: "7", EVENTS: "12"}
    assert (total.refresh_mode, total.effective_mode) == (RefreshMode.DIFFERENTIAL, "DIFFERENTIAL")
    assert total.options == {"tier": "hot", "partition_by": ["day"], "fuse_ceiling": 1000}
    assert total.data_timestamp == NOON + timedelta(seconds=59)
    assert (broken.status, broken.consecutive_errors, broken.last_error, broken.needs_reinitialize) == (
        Status.SUSPENDED,
        3,
        "no column called 'x'",
        True,
    )


def test_refreshes_and_what_was_about_to_happen(stored: Catalog) -> None:
    with stored.read() as tx:
        running, done, failed = history.recent(tx)
        [intent] = intents.pending(tx)
        [alert] = alerts.recent(tx)
        settings = preferences.stored(tx)
    assert (running.status, done.status, failed.status) == (Outcome.RUNNING, Outcome.COMPLETED, Outcome.FAILED)
    assert (done.action, done.rows_inserted, done.rows_deleted, done.duration_ms) == (Action.DIFFERENTIAL, 5, 2, 1000)
    assert (done.frontier, done.details["spark_jobs"]) == ({"Sales.Orders": "7", "events": "12"}, 4)
    assert failed.error_code == "UNKNOWN_COLUMN"
    commit, result = '{"read_version": 3, "adds": []}', {"frontier": {"1": "8"}, "rows_inserted": 1}
    assert intent.members == (IntentMember(TOTAL, 0, commit, 3, running.id, result),)
    assert (alert.event, alert.severity, alert.relation_id) == ("auto_suspended", Severity.ERROR, BROKEN)
    assert settings == {"max_consecutive_errors": "5"}


def test_gates_stand_where_they_stood(stored: Catalog) -> None:
    with stored.read() as tx:
        [fuse], [gate], [watermark] = fuses.listing(tx), source_gates.listing(tx), watermarks.listing(tx)
        [group], past = watermarks.groups(tx), watermarks.history(tx, EVENTS)
    assert (str(fuse.name), fuse.mode, fuse.state, fuse.ceiling) == ("total", "adaptive", "BLOWN", 100_000)
    assert (fuse.blown_at, fuse.blow_details) == (NOON + timedelta(seconds=80), {"deleted": 900})
    assert (fuse.last_reset_by, fuse.last_reset_action) == ("ada", "SKIP_CHANGES")
    assert (gate.source_id, gate.gated, gate.gated_by) == (ORDERS, True, "etl")
    assert (watermark.source_id, watermark.watermark, watermark.position) == (EVENTS, NOON, "12")
    # What was said before there was a history is its beginning.
    assert past == [watermark]
    assert (group.name, group.mode, group.tolerance_seconds) == ("Daily", "gate", 1.5)
    assert set(group.source_ids) == {ORDERS, EVENTS}


def test_what_the_scheduler_keeps_is_there(stored: Catalog) -> None:
    with stored.read() as tx:
        [group], [job] = groups.listing(tx), jobs.recent(tx)
        lease, told = leases.find(tx, "scheduler"), scheduling.state(tx)
    assert (group.name, group.isolation, group.member_ids) == ("Reports", "REPEATABLE_READ", (TOTAL,))
    assert (job.status, job.members, job.lease_token) == ("RUNNING", (TOTAL,), 7)
    assert lease is not None
    assert (lease.holder, lease.token) == ("host-1", 7)
    assert (told.paused, told.draining) == (False, False)


def test_definitions_are_counted_from_now_on(stored: Catalog, given: Given) -> None:
    with stored.write() as tx:
        before = scheduling.ddl_number(tx)
        watermarks.drop_group(tx, "daily")
    with stored.write() as tx:
        dropped = scheduling.ddl_number(tx)
        streams.update(tx, TOTAL, now=given.now, schedule="9s")
    with stored.read() as tx:
        assert before < dropped < scheduling.ddl_number(tx)


def test_what_stream_tables_remember_since_version_2(stored: Catalog, folder: Path) -> None:
    with stored.read() as tx:
        total = streams.get(tx, named("total"))
    kept = folder.name != "catalog-v1"
    assert (total.state, total.canonical) == (
        ({"layout": 2, "inner": {"a": 3}}, "SELECT 1 AS total") if kept else ({}, None)
    )


def test_it_can_be_worked_with(stored: Catalog, given: Given) -> None:
    with stored.write() as tx:
        assert given.table(tx, "lines").id > BROKEN
        [intent] = intents.pending(tx, [TOTAL])
        assert intents.remove(tx, intent.id)
        relations.remove(tx, TOTAL)
        relations.remove(tx, RECENT)
        relations.remove(tx, ORDERS)
    with stored.read() as tx:
        assert [str(relation.name) for relation in relations.listing(tx)] == ["broken", "events", "lines"]
