"""Several processes on one catalog, through a pooler that gives each transaction any connection."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import psycopg

from tests.catalog.given import Given
from tests.catalog.test_concurrency import test_a_second_writer_waits_for_the_first as test_a_second_writer_waits
from tests.catalog.test_concurrency import test_a_watermark_never_goes_back as test_a_watermark_never_goes_back
from tests.catalog.test_concurrency import test_no_two_hold_a_lease_at_once as test_no_two_hold_a_lease_at_once
from tests.catalog.test_concurrency import test_no_update_is_lost as test_no_update_is_lost
from tests.catalog.test_concurrency import test_one_of_several_claims_a_table as test_one_of_several_claims_a_table
from tests.catalog.test_concurrency import test_one_of_several_finalises_an_intent as test_one_of_several_finalises
from tests.catalog.test_concurrency import test_the_first_open_migrates_once as test_the_first_open_migrates_once
from tests.catalog.test_concurrency import test_who_lost_its_lease_changes_nothing as test_who_lost_its_lease
from trickle.catalog import Catalog, alerts, preferences, streams
from trickle.catalog.records import Severity
from trickle.clock import SystemClock
from trickle.engine import Engine
from trickle.history.sinks import NotifySink, deliver
from trickle.lake.location import Location
from trickle.settings import Settings
from trickle.warehouse import Warehouse

__all__ = [
    "test_a_second_writer_waits",
    "test_a_watermark_never_goes_back",
    "test_no_two_hold_a_lease_at_once",
    "test_no_update_is_lost",
    "test_one_of_several_claims_a_table",
    "test_one_of_several_finalises",
    "test_the_first_open_migrates_once",
    "test_who_lost_its_lease",
]


def test_a_reader_sees_one_state_although_connections_change(catalog: Catalog, given: Given) -> None:
    """Two numbers are moved together; nobody sees one of them without the other."""
    with catalog.write() as tx:
        both = [given.stream(tx, name).relation.id for name in ("one", "other")]
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with catalog.write() as tx:
                for each in both:
                    streams.lock(tx, each)
                    streams.update(tx, each, now=given.now, refresh_number=number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = set()
        for _ in range(150):
            with catalog.read() as tx:
                found = [streams.by_id(tx, each).refresh_number for each in both]
            assert found[0] == found[1]
            seen.add(found[0])
    finally:
        stop.set()
        writer.join()
    assert len(seen) > 5, "the writer was at work"


def test_nothing_of_a_session_stays_on_a_connection(catalog: Catalog, url: str) -> None:
    """What a transaction set for itself is gone for whoever gets the connection next."""
    for _ in range(10):
        with catalog.write() as tx:
            preferences.put(tx, "counter", "1", now=SystemClock().now())
    with psycopg.connect(url, prepare_threshold=None, autocommit=True) as other:
        for _ in range(10):
            assert other.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert other.execute("SHOW transaction_read_only").fetchone() == ("off",)
            assert other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
            assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_alerts_sent_through_the_pooler_reach_who_listens_at_the_server(
    catalog: Catalog, postgres_url: str, tmp_path: Path
) -> None:
    """LISTEN needs a session of its own, so a listener connects to the server itself; NOTIFY does not."""
    clock = SystemClock()
    warehouse = Warehouse(Location.of(str(tmp_path)), catalog, Engine.open(), clock, Settings())
    with psycopg.connect(postgres_url, autocommit=True) as listener:
        listener.execute("LISTEN trickle_alert")
        for number in range(3):
            with catalog.write() as tx:
                alerts.add(
                    tx,
                    event="fuse_blown",
                    relation_id=None,
                    severity=Severity.CRITICAL,
                    payload={"number": number},
                    now=clock.now(),
                )
        [delivery] = deliver(warehouse, [NotifySink(catalog)])
        told = [json.loads(notice.payload) for notice in listener.notifies(timeout=10, stop_after=3)]
    assert delivery.delivered == 3
    assert [one["number"] for one in told] == [0, 1, 2]
