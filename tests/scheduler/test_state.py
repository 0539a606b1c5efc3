"""What a tick looks at, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from sqlalchemy import Engine as Database
from sqlalchemy import event

import trickle
from bench.resting import add_resting
from tests.postgres import Postgres
from trickle.catalog import preferences, relations
from trickle.scheduler.run import tick
from trickle.scheduler.state import Memory, load_state
from trickle.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def t(tmp_path: Path, clock: FakeClock) -> Iterator[trickle.Trickle]:
    """A warehouse whose Spark is never started."""
    with trickle.connect(tmp_path / "wh", clock=clock) as opened:
        yield opened
        assert not opened.warehouse.engine.started


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is sent to any database inside the block, without the brackets of transactions."""
    sent: list[str] = []

    def note(_: Any, __: Any, text: str, *___: Any) -> None:
        if not text.startswith(("BEGIN", "PRAGMA")):
            sent.append(text)

    event.listen(Database, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Database, "before_cursor_execute", note)


def test_a_thousand_tables_at_rest_cost_no_spark_and_few_statements(t: trickle.Trickle, clock: FakeClock) -> None:
    add_resting(t, tables=1000, sources=100)
    clock.advance(timedelta(seconds=2))
    assert tick(t.warehouse) == []
    clock.advance(timedelta(seconds=2))
    with statements() as sent:
        started = time.perf_counter()
        assert tick(t.warehouse) == []
        took = time.perf_counter() - started
    marks = [text for text in sent if text.startswith("UPDATE stream_tables")]
    assert len(marks) == 1, "all tables are marked in one statement"
    assert len(sent) <= 16, sent
    # The benchmark has the time on an idle machine; here only that it is not a matter of seconds.
    assert took < 1.0
    assert {row.last_refresh_at for row in t.status()} == {clock.now()}
    assert t.refresh_history() == [], "and the history does not hear of it"


def test_a_tick_with_nothing_due_writes_to_no_stream_table(t: trickle.Trickle) -> None:
    add_resting(t, tables=3, sources=1)
    tick(t.warehouse)
    with statements() as sent:
        tick(t.warehouse)
    assert not [text for text in sent if "stream_tables" in text and not text.startswith("SELECT")]


def test_definitions_are_read_again_only_when_they_changed(t: trickle.Trickle, clock: FakeClock) -> None:
    add_resting(t, tables=2, sources=1)
    memory = Memory()
    first = load_state(t.warehouse, memory, clock.now()).definitions
    assert load_state(t.warehouse, memory, clock.now()).definitions is first
    with t.warehouse.catalog.write() as tx:
        preferences.put(tx, "default_schedule", "2m", clock.now())
    second = load_state(t.warehouse, memory, clock.now()).definitions
    assert second is not first
    assert second.settings.default_schedule == "2m"


def test_one_look_sees_what_moved(t: trickle.Trickle, clock: FakeClock, tmp_path: Path) -> None:
    add_resting(t, tables=4, sources=2)
    memory = Memory()
    state = load_state(t.warehouse, memory, clock.now())
    assert not any(state.moved.values())
    write_deltalake(tmp_path / "wh/default/source_1", pa.table({"id": [1]}), mode="append")
    state = load_state(t.warehouse, memory, clock.now())
    moved = {str(state.tables[table].name) for table, sources in state.moved.items() if sources}
    assert moved == {"resting_1", "resting_3"}


def test_a_source_that_is_gone_does_not_hide_the_others(t: trickle.Trickle, clock: FakeClock, tmp_path: Path) -> None:
    add_resting(t, tables=2, sources=2)
    (tmp_path / "wh/default/source_0").rename(tmp_path / "elsewhere")
    state = load_state(t.warehouse, Memory(), clock.now())
    with t.warehouse.catalog.read() as tx:
        known = {str(relation.name): relation.id for relation in relations.listing(tx)}
    assert known["source_0"] not in state.cut
    assert known["source_1"] in state.cut
    assert state.is_stale(known["resting_0"]), "the refresh says what is wrong"
    assert not state.is_stale(known["resting_1"])


def test_the_same_on_postgresql(postgres: Postgres, tmp_path: Path, clock: FakeClock) -> None:
    with postgres.database() as url, trickle.connect(tmp_path / "pg", catalog=url, clock=clock) as t:
        add_resting(t, tables=20, sources=4)
        clock.advance(timedelta(seconds=2))
        assert tick(t.warehouse) == []
        assert {row.last_refresh_at for row in t.status()} == {clock.now()}
        assert not t.warehouse.engine.started
