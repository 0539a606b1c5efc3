"""Several processes on one catalog."""

from __future__ import annotations

import shutil
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.catalog.given import Given
from tests.catalog.together import Workers
from trickle.catalog import Catalog, IntentMember, intents, preferences, streams, watermarks


def test_no_update_is_lost(catalog: Catalog, url: str, given: Given, together: Workers) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    assert together("count_up", url, str(total), "300") == [300] * 4
    with catalog.read() as tx:
        assert streams.by_id(tx, total).refresh_number == 1200


def test_the_first_open_migrates_once(empty_url: str, together: Workers) -> None:
    warehouses = together("first_open", empty_url)
    catalog = Catalog.open(empty_url, create=False)
    assert set(warehouses) == {catalog.meta().warehouse_id}
    catalog.close()


def test_one_of_several_claims_a_table(catalog: Catalog, url: str, given: Given, together: Workers) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    assert sorted(together("claim", url, str(total))) == [False, False, False, True]
    with catalog.read() as tx:
        assert len(intents.pending(tx)) == 1


def test_one_of_several_finalises_an_intent(
    catalog: Catalog, url: str, given: Given, together: Workers, now: datetime
) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        intent = intents.add(tx, [IntentMember(total, 0, None, 1, None)], now)
    assert sorted(together("finalise", url, intent.id)) == [False, False, False, True]


def test_no_two_hold_a_lease_at_once(catalog: Catalog, url: str, together: Workers) -> None:
    answers = together("hold", url, "0.7")
    spans = sorted((since, until, token) for held in answers for token, since, until in held)
    assert sum(bool(held) for held in answers) > 1, "nobody had to wait for another"
    for (_, until, token), (since, _, later) in pairwise(spans):
        assert until <= since
        assert token < later


def test_who_lost_its_lease_changes_nothing(catalog: Catalog, url: str, together: Workers) -> None:
    answers = together("count_fenced", url, "15")
    assert sum(fenced_off for _, fenced_off in answers) > 0, "nobody was ever fenced off"
    with catalog.read() as tx:
        assert preferences.stored(tx)["counter"] == str(sum(counted for counted, _ in answers)) == "60"


def test_a_watermark_never_goes_back(catalog: Catalog, url: str, given: Given, together: Workers) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
    answers = together("advance", url, str(orders), "40")
    for _, seen in answers:
        assert seen == sorted(seen)
    greatest = max(said for said, _ in answers)
    with catalog.read() as tx:
        stored = watermarks.find(tx, orders)
        past = watermarks.history(tx, orders)
    assert stored is not None
    assert stored.watermark == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=greatest)
    assert past[0] == stored
    assert len({point.watermark for point in past}) == len(past)


def test_a_second_writer_waits_for_the_first(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
    begun = threading.Event()

    def count_up() -> None:
        begun.set()
        with catalog.write() as tx:
            number = streams.lock(tx, total).refresh_number
            streams.update(tx, total, now=given.now, refresh_number=number + 1)

    second = threading.Thread(target=count_up)
    with catalog.write() as tx:
        number = streams.lock(tx, total).refresh_number
        second.start()
        begun.wait()
        second.join(0.2)
        assert second.is_alive()
        streams.update(tx, total, now=given.now, refresh_number=number + 1)
    second.join()
    with catalog.read() as tx:
        assert streams.by_id(tx, total).refresh_number == 2


@pytest.fixture
def counter(sqlite_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sqlite_template, tmp_path / "counter.db"))


def test_the_trap_that_a_plain_sqlite_engine_is(counter: Path) -> None:
    """Why ``connections`` begins transactions itself: the driver begins them at the first write, after the read."""
    engine = create_engine(f"sqlite:///{counter}")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO settings VALUES ('n', '0', '2026-01-01')"))
    read, write = text("SELECT value FROM settings"), text("UPDATE settings SET value = :value")
    with engine.connect() as first, engine.connect() as second:
        seen = [int(str(connection.execute(read).scalar())) for connection in (first, second)]
        for connection, value in zip((first, second), seen, strict=True):
            connection.execute(write, {"value": str(value + 1)})
            connection.commit()
        # Two increments, no error, and one of them is gone.
        assert first.execute(read).scalar() == "1"
    engine.dispose()
