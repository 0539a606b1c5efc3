from __future__ import annotations

import pytest

from tests.catalog.given import Given
from trickle.catalog import Action, Catalog, Initiator, Outcome, history, relations
from trickle.errors import InternalError


def begin(tx, given, table, seconds=0.0, **fields):
    return history.start(
        tx,
        relation_id=table.relation.id,
        name=str(table.relation.name),
        action=Action.FULL,
        initiated_by=Initiator.MANUAL,
        now=given.later(seconds),
        **fields,
    )


def test_a_refresh_runs_and_then_has_ended(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total")
        refresh = begin(tx, given, total, version_before=3, reason="first", details={"spark_jobs": 1})
    with catalog.read() as tx:
        [running] = history.running(tx)
        assert history.recent(tx) == [running]
    assert (running.id, running.status, running.ended_at, running.duration_ms) == (refresh, Outcome.RUNNING, None, None)
    assert (running.name, running.version_before, running.started_at) == ("total", 3, given.now)
    with catalog.write() as tx:
        ended = history.finish(
            tx,
            refresh,
            status=Outcome.COMPLETED,
            now=given.later(0.25),
            action=Action.DIFFERENTIAL,
            rows_inserted=5,
            rows_deleted=2**40,
            version_after=4,
            frontier={"orders": "9"},
            details={"files_added": 2},
        )
        assert history.find(tx, refresh) == ended
        assert history.running(tx) == []
    assert ended is not None
    assert (ended.status, ended.action, ended.rows_inserted, ended.rows_deleted) == (
        Outcome.COMPLETED,
        Action.DIFFERENTIAL,
        5,
        2**40,
    )
    assert (ended.ended_at, ended.duration_ms) == (given.later(0.25), 250.0)
    assert (ended.version_before, ended.version_after, ended.reason) == (3, 4, "first")
    assert (ended.frontier, ended.details) == ({"orders": "9"}, {"spark_jobs": 1, "files_added": 2})


def test_a_failed_refresh_keeps_its_error(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        refresh = begin(tx, given, given.stream(tx, "total"))
        ended = history.finish(
            tx,
            refresh,
            status=Outcome.FAILED,
            now=given.now,
            error_code="QUERY_ERROR",
            error_message="no column \x00",
            duration_ms=1.5,
        )
    assert ended is not None
    assert (ended.status, ended.error_code, ended.error_message) == (Outcome.FAILED, "QUERY_ERROR", "no column \ufffd")
    assert (ended.action, ended.duration_ms, ended.frontier) == (Action.FULL, 1.5, None)


def test_a_refresh_can_be_recorded_at_once(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total")
        entered = history.record(
            tx,
            relation_id=total.relation.id,
            name="total",
            action=Action.NO_DATA,
            status=Outcome.COMPLETED,
            initiated_by=Initiator.SCHEDULER,
            started_at=given.now,
            ended_at=given.later(0.002),
            reason="nothing changed",
        )
        with pytest.raises(InternalError):
            history.record(
                tx,
                relation_id=total.relation.id,
                name="total",
                action=Action.FULL,
                status=Outcome.RUNNING,
                initiated_by=Initiator.MANUAL,
                started_at=given.now,
                ended_at=given.now,
            )
    with catalog.read() as tx:
        assert history.recent(tx) == [entered]
    assert (entered.duration_ms, entered.reason, entered.initiated_by) == (2.0, "nothing changed", Initiator.SCHEDULER)


def test_recent_is_newest_first_and_limited(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        a, b = given.stream(tx, "a"), given.stream(tx, "b")
        ids = [begin(tx, given, table, second) for second, table in enumerate([a, b, a, b, a])]
    with catalog.read() as tx:
        assert [r.id for r in history.recent(tx)] == ids[::-1]
        assert [r.id for r in history.recent(tx, limit=2)] == [ids[4], ids[3]]
        assert [r.id for r in history.recent(tx, a.relation.id)] == [ids[4], ids[2], ids[0]]
        assert [r.id for r in history.running(tx, b.relation.id)] == [ids[1], ids[3]]


def test_recent_refreshes_of_some_actions(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total")
        in_full = begin(tx, given, total, 0)
        for second in (1, 2):
            history.start(
                tx,
                relation_id=total.relation.id,
                name="total",
                action=Action.NO_DATA,
                initiated_by=Initiator.MANUAL,
                now=given.later(second),
            )
    with catalog.read() as tx:
        found = history.recent(tx, total.relation.id, 1, (Action.FULL, Action.DIFFERENTIAL))
        assert [r.id for r in found] == [in_full]
        assert history.recent(tx, total.relation.id, 1, (Action.DIFFERENTIAL,)) == []


def test_history_goes_with_its_stream_table(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total, other = given.stream(tx, "total"), given.stream(tx, "other")
        gone, kept = begin(tx, given, total), begin(tx, given, other)
        relations.remove(tx, total.relation.id)
        assert [r.id for r in history.recent(tx)] == [kept]
        assert history.finish(tx, gone, status=Outcome.COMPLETED, now=given.now) is None


def test_purge_takes_the_oldest_in_batches_and_spares_what_runs(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total")
        ids = [begin(tx, given, total, second) for second in range(6)]
        for refresh in ids[1:]:
            history.finish(tx, refresh, status=Outcome.COMPLETED, now=given.later(9))
        assert history.purge(tx, given.later(4), batch=2) == 2
        assert [r.id for r in history.recent(tx)] == [ids[5], ids[4], ids[3], ids[0]]
        assert history.purge(tx, given.later(4), batch=2) == 1
        assert history.purge(tx, given.later(4), batch=2) == 0
        assert [r.id for r in history.recent(tx)] == [ids[5], ids[4], ids[0]]
