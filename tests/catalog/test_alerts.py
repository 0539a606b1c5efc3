from __future__ import annotations

import threading

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, Severity, alerts, relations
from trickle.catalog.records import Event
from trickle.errors import InternalError


def test_alerts_are_newest_first_and_can_be_narrowed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        plain = alerts.add(tx, event="stale_data", severity=Severity.WARNING, now=given.now)
        about = alerts.add(
            tx,
            event="refresh_failed",
            severity=Severity.ERROR,
            now=given.later(1),
            relation_id=total,
            payload={"name": "total", "errors": 3},
        )
    with catalog.read() as tx:
        assert alerts.recent(tx) == [about, plain]
        assert alerts.recent(tx, limit=1) == [about]
        assert alerts.recent(tx, total) == [about]
        assert alerts.recent(tx, event="stale_data") == [plain]
    assert (about.relation_id, about.payload, about.created_at) == (
        total,
        {"name": "total", "errors": 3},
        given.later(1),
    )


def test_an_alert_outlives_what_it_speaks_of(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        alerts.add(tx, event="x", severity=Severity.INFO, now=given.now, relation_id=total, payload={"name": "total"})
        relations.remove(tx, total)
    with catalog.read() as tx:
        [kept] = alerts.recent(tx)
    assert (kept.relation_id, kept.payload) == (None, {"name": "total"})


def test_purge_takes_the_oldest(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        entered = [
            alerts.add(tx, event="x", severity=Severity.CRITICAL, now=given.later(second)) for second in range(4)
        ]
        assert alerts.purge(tx, given.later(3), batch=2) == 2
        assert alerts.recent(tx) == [entered[3], entered[2]]
        assert alerts.purge(tx, given.later(3), batch=2) == 1


def test_an_event_knows_how_severe_it_is(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        assert alerts.add(tx, event=Event.FUSE_BLOWN, now=given.now).severity is Severity.CRITICAL
        assert alerts.add(tx, event="refresh_failed", now=given.now).severity is Severity.ERROR
        assert alerts.add(tx, event="stale_data", now=given.now, severity=Severity.INFO).severity is Severity.INFO
        with pytest.raises(InternalError, match="'fuse_bloom' needs a severity"):
            alerts.add(tx, event="fuse_bloom", now=given.now)


def test_alerts_after_one_come_oldest_first(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        made = [alerts.add(tx, event="stale_data", now=given.later(n)) for n in range(4)]
        assert alerts.after(tx, 0, 10) == made
        assert alerts.after(tx, made[1].id, 1) == [made[2]]
        assert alerts.after(tx, made[3].id, 10) == []


def test_who_reads_alerts_waits_for_those_who_enter_them(postgres_catalog: Catalog, given: Given) -> None:
    """An id is given out before it is committed: without waiting, the second alert would hide the first for ever."""
    catalog = postgres_catalog
    seen = []

    def read() -> None:
        with catalog.write() as tx:
            alerts.settle(tx)
            seen.extend(alerts.after(tx, 0, 10))

    reader = threading.Thread(target=read)
    with catalog.write() as slow:
        first = alerts.add(slow, event="stale_data", now=given.now)
        with catalog.write() as quick:
            second = alerts.add(quick, event="resumed", now=given.now)
        reader.start()
        reader.join(0.3)
        assert reader.is_alive()
    reader.join()
    assert seen == [first, second]
