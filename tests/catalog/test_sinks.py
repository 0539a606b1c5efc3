from __future__ import annotations

from tests.catalog.given import Given
from trickle.catalog import Catalog, alerts, sinks


def test_a_new_sink_begins_with_what_was_raised_lately(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        ids = [alerts.add(tx, event="stale_data", now=given.later(n)).id for n in range(4)]
        assert sinks.find(tx, "log") is None
        begun = sinks.begin(tx, "log", given.later(2), given.later(9))
        assert (begun.alert_id, begun.failures, begun.last_error) == (ids[1], 0, None)
        # Its place is its own from then on.
        assert sinks.begin(tx, "log", given.later(99), given.later(99)) == begun
        assert sinks.begin(tx, "webhook", given.later(-1), given.later(9)).alert_id == 0
        assert [cursor.sink for cursor in sinks.listing(tx)] == ["log", "webhook"]


def test_failures_are_counted_until_one_gets_through(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        assert sinks.note(tx, "log", 3, given.now).alert_id == 3
        assert sinks.note(tx, "log", 0, given.later(1), "no answer").failures == 1
        failed = sinks.note(tx, "log", 4, given.later(2), "no answer")
        assert (failed.alert_id, failed.failures, failed.last_error) == (4, 2, "no answer")
        healed = sinks.note(tx, "log", 5, given.later(3))
        assert (healed.alert_id, healed.failures, healed.last_error) == (5, 0, None)
        # Two processes may deliver the same: the slower one does not take the cursor back.
        assert sinks.note(tx, "log", 4, given.later(4)).alert_id == 5
        assert sinks.find(tx, "log") == sinks.listing(tx)[0]
