"""Several processes on one catalog."""

from __future__ import annotations

import shutil
import threading
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.catalog.given import Given
from tests.catalog.together import Workers
from trickle.catalog import Catalog, IntentMember, intents, streams


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
