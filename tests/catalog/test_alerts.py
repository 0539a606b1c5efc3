from __future__ import annotations

from tests.catalog.given import Given
from trickle.catalog import Catalog, Severity, alerts, relations


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
