from __future__ import annotations

import time
from dataclasses import fields
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, Kind, RefreshMode, Status, file_url, relations, streams
from trickle.catalog.models import FrontierRow, RelationRow, StreamTableRow
from trickle.catalog.records import Relation, Schedulable
from trickle.errors import ConcurrentModification, InternalError, ParseError, UnknownTable, WrongKind


def test_a_new_stream_table_has_read_nothing_yet(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        added = given.stream(
            tx,
            "total",
            query="SELECT SUM(amount) FROM orders",
            schedule="@hourly",
            refresh_mode=RefreshMode.DIFFERENTIAL,
            options={"tier": "hot", "partition_by": ["day"], "fuse_ceiling": 10**15, "append_only": True},
            always_refresh=True,
        )
    with catalog.read() as tx:
        found = streams.get(tx, named("TOTAL"))
        assert streams.by_id(tx, found.relation.id) == found
        assert streams.listing(tx) == [found]
    assert found == added
    assert found.query == found.relation.query == "SELECT SUM(amount) FROM orders"
    assert (found.status, found.populated, found.version, found.refresh_number) == (
        Status.INITIALIZING,
        False,
        None,
        0,
    )
    assert (found.frontier, found.consecutive_errors, found.last_error) == ({}, 0, None)
    assert (found.schedule, found.refresh_mode, found.always_refresh) == ("@hourly", RefreshMode.DIFFERENTIAL, True)
    assert found.options == {"tier": "hot", "partition_by": ["day"], "fuse_ceiling": 10**15, "append_only": True}


def test_get_tells_a_missing_name_from_a_wrong_kind(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.table(tx, "orders")
        given.table(tx, "events", Kind.ATTACHED)
        given.stream(tx, "total")
    with catalog.read() as tx:
        with pytest.raises(UnknownTable) as caught:
            streams.get(tx, named("totl"))
        assert caught.value.hint == "did you mean total?"
        # A plain table is no help to who looks for a stream table.
        with pytest.raises(UnknownTable) as caught:
            streams.get(tx, named("order"))
        assert caught.value.hint is None
        with pytest.raises(WrongKind, match="orders is a table, not a stream table"):
            streams.get(tx, named("Orders"))
        with pytest.raises(WrongKind, match="events is an attached table"):
            streams.get(tx, named("events"))
        assert streams.find(tx, named("orders")) is None


def test_update_changes_only_what_is_named(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        before = given.stream(tx, "total", options={"tier": "hot"})
        streams.update(
            tx,
            before.relation.id,
            now=given.later(1),
            status=Status.ACTIVE,
            populated=True,
            version=7,
            refresh_number=3,
            data_timestamp=given.later(0.5),
            last_refresh_at=given.later(1),
            effective_mode="FULL",
        )
        after = streams.by_id(tx, before.relation.id)
    assert (after.status, after.populated, after.version, after.refresh_number) == (Status.ACTIVE, True, 7, 3)
    assert (after.data_timestamp, after.last_refresh_at) == (given.later(0.5), given.later(1))
    assert (after.options, after.schedule, after.query) == ({"tier": "hot"}, "5s", "SELECT 1")
    assert after.updated_at == given.later(1)
    # The definition did not change.
    assert after.relation.updated_at == before.relation.updated_at


def test_errors_are_counted_and_forgotten(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.stream(tx, "total").relation.id
        streams.update(tx, table, now=given.now, consecutive_errors=2, last_error="boom", last_error_at=given.now)
        failed = streams.by_id(tx, table)
        streams.update(tx, table, now=given.now, consecutive_errors=0, last_error=None, last_error_at=None)
        healed = streams.by_id(tx, table)
    assert (failed.consecutive_errors, failed.last_error, failed.last_error_at) == (2, "boom", given.now)
    assert (healed.consecutive_errors, healed.last_error, healed.last_error_at) == (0, None, None)


def test_a_new_query_is_the_relations_query_too(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.stream(tx, "total").relation.id
        streams.update(tx, table, now=given.later(1), query="SELECT 2", options={"tier": "cold"})
        after = streams.by_id(tx, table)
    assert (after.query, after.relation.query, after.options) == ("SELECT 2", "SELECT 2", {"tier": "cold"})
    assert after.relation.updated_at == given.later(1)


def test_the_frontier_is_replaced_as_a_whole(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        a, b = given.table(tx, "a"), given.table(tx, "b")
        total = given.stream(tx, "total", reads=[a, b]).relation.id
        other = given.stream(tx, "other", reads=[a]).relation.id
        streams.set_frontier(tx, other, {a.id: "1"})
        streams.set_frontier(tx, total, {a.id: "4", b.id: "16/B374D848"})
        assert streams.by_id(tx, total).frontier == {a.id: "4", b.id: "16/B374D848"}
        streams.set_frontier(tx, total, {a.id: "5"})
    with catalog.read() as tx:
        assert {str(t.relation.name): t.frontier for t in streams.listing(tx)} == {
            "other": {a.id: "1"},
            "total": {a.id: "5"},
        }


def test_a_stream_table_goes_with_its_relation(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders")
        total = given.stream(tx, "total", reads=[orders]).relation
        streams.set_frontier(tx, total.id, {orders.id: "1"})
        relations.remove(tx, total.id)
        assert streams.listing(tx) == []
        for act in (
            lambda: streams.by_id(tx, total.id),
            lambda: streams.lock(tx, total.id),
            lambda: streams.update(tx, total.id, now=given.now, populated=True),
        ):
            with pytest.raises(ConcurrentModification, match="dropped"):
                act()


def test_a_frontier_on_a_source_that_is_gone_is_a_conflict(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    with pytest.raises(ConcurrentModification), catalog.write() as tx:
        streams.set_frontier(tx, total, {999: "1"})
    with catalog.read() as tx:
        assert streams.by_id(tx, total).frontier == {}


def test_texts_of_any_size_and_kind_come_back(catalog: Catalog, given: Given) -> None:
    query = "SELECT '" + "🦆 it's \\ % :x \u2028\n\t" * 60_000 + "'"
    options = {"description": "half a pair \ud800, a nul \x00", "nested": {"a": [1, 2.5, None, True]}}
    with catalog.write() as tx:
        given.stream(tx, "total", query=query, options=options)
    with catalog.read() as tx:
        found = streams.get(tx, named("total"))
    assert len(query) > 1_000_000
    assert found.query == query
    assert found.options == options


@pytest.mark.parametrize("bad", ["SELECT '\x00'", "SELECT '\udc00'"])
def test_a_query_that_no_database_can_keep_is_refused(catalog: Catalog, given: Given, bad: str) -> None:
    with catalog.write() as tx, pytest.raises(ParseError, match="cannot be stored"):
        given.stream(tx, "total", query=bad)


def test_error_texts_keep_all_but_what_cannot_be_stored(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.stream(tx, "total").relation.id
        streams.update(tx, table, now=given.now, last_error="bad byte \x00 and \ud800 in 'x'")
        assert streams.by_id(tx, table).last_error == "bad byte \ufffd and \ufffd in 'x'"


def test_a_time_without_a_zone_is_a_defect(catalog: Catalog, given: Given) -> None:
    with pytest.raises(InternalError, match="time zone"), catalog.write() as tx:
        given.stream(tx, "total", now=given.now.replace(tzinfo=None))


def test_what_is_no_json_is_not_stored(catalog: Catalog, given: Given) -> None:
    with pytest.raises((InternalError, ValueError), match="JSON"), catalog.write() as tx:
        given.stream(tx, "total", options={"ratio": float("nan")})
    with catalog.read() as tx:
        assert streams.listing(tx) == []


def test_idle_tables_are_marked_together_and_only_forward(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        fresh, stale, empty, other = (given.stream(tx, name).relation.id for name in ("f", "s", "e", "o"))
        for table in (fresh, stale, other):
            streams.update(tx, table, now=given.now, populated=True, version=1)
        streams.update(tx, fresh, now=given.now, last_refresh_at=given.later(90), data_timestamp=given.later(80))
        streams.update(tx, stale, now=given.now, last_refresh_at=given.now)
        streams.mark_idle(tx, [fresh, stale, empty, 999], given.later(50), given.later(60))
        streams.mark_idle(tx, [], given.later(99), given.later(99))
        found = {table.id: (table.last_refresh_at, table.data_timestamp) for table in streams.schedulable(tx)}
    assert found == {
        fresh: (given.later(90), given.later(80)),
        stale: (given.later(60), given.later(50)),
        # What was never filled is not fresh.
        empty: (None, None),
        other: (None, None),
    }


def test_more_tables_than_a_statement_has_variables_are_marked(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        table = given.stream(tx, "a").relation.id
        streams.update(tx, table, now=given.now, populated=True)
        streams.mark_idle(tx, range(table, table + 70_000), given.now, given.now)
        assert streams.by_id(tx, table).last_refresh_at == given.now


def test_the_scheduler_sees_what_the_records_say(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders")
        given.stream(tx, "Sales.Total", [orders], schedule="@hourly", options={"tier": "cold"}, always_refresh=True)
        broken = given.stream(tx, "broken").relation.id
        total = streams.get(tx, named("sales", "total")).relation.id
        streams.set_frontier(tx, total, {orders.id: "7"})
        streams.update(tx, total, now=given.now, status=Status.ACTIVE, populated=True, version=3, consecutive_errors=1)
        streams.update(tx, broken, now=given.now, status=Status.SUSPENDED, needs_reinitialize=True)
    with catalog.read() as tx:
        seen = streams.schedulable(tx)
        records = {stream.relation.id: stream for stream in streams.listing(tx)}
    assert [table.id for table in seen] == [total, broken]
    for table in seen:
        record = records[table.id]
        assert table.name == record.relation.name
        for field in fields(Schedulable):
            if field.name not in ("id", "name"):
                assert getattr(table, field.name) == getattr(record, field.name), field.name


def enter_many(tx: Session, number: int, sources: list[Relation], now: datetime) -> None:
    """Stream tables by the thousand: one by one they take longer than what is measured."""
    ids = range(100, 100 + number)
    kind, mode, options = Kind.STREAM_TABLE, RefreshMode.AUTO, {"tier": "hot", "fuse": "adaptive"}
    named = [
        {"id": n, "table_name": f"t{n}", "table_key": f"t{n}", "uid": f"{n}", "location": f"./default/t{n}"}
        for n in ids
    ]
    place = {"schema_name": "default", "schema_key": "default", "storage_options": {}, "key_columns": []}
    made = {"kind": kind, "query": "SELECT 1", "created_at": now, "updated_at": now}
    tx.execute(insert(RelationRow), [{**one, **place, **made} for one in named])
    kept = {"schedule": "5s", "refresh_mode": mode, "options": options, "status": Status.ACTIVE, "updated_at": now}
    state = {"populated": True, "version": 3, "refresh_number": 2, "last_refresh_at": now, "data_timestamp": now}
    flags = {"consecutive_errors": 0, "needs_reinitialize": False, "always_refresh": False}
    tx.execute(insert(StreamTableRow), [{"relation_id": n, **kept, **state, **flags} for n in ids])
    read = [(n, sources[(n + step) % len(sources)].id) for n in ids for step in range(2)]
    tx.execute(insert(FrontierRow), [{"relation_id": n, "source_id": source, "position": "12"} for n, source in read])


def test_a_thousand_tables_are_read_in_no_time(tmp_path: Path, given: Given) -> None:
    """A tick over idle tables has 100 ms for everything; the best of some leaves out the hiccups of a busy machine."""
    catalog = Catalog.open(file_url(tmp_path / "catalog.db"))
    with catalog.write() as tx:
        enter_many(tx, 1000, [given.table(tx, f"source_{n}") for n in range(10)], given.now)
    took = []
    for _ in range(9):
        began = time.perf_counter()
        with catalog.read() as tx:
            found = streams.schedulable(tx)
        took.append(time.perf_counter() - began)
    catalog.close()
    assert len(found) == 1000
    assert all(len(table.frontier) == 2 for table in found)
    assert min(took) < 0.03
