"""Commits of anybody wake the scheduler."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from trickle.lake.location import Location
from trickle.scheduler.wake import COMMIT, ENDED, Wake, Watcher

ROWS = pa.table({"id": [1]})


def test_the_bell_is_heard_once_for_all_that_rang_it() -> None:
    wake = Wake()
    wake.ring(COMMIT)
    wake.ring(COMMIT)
    wake.ring(ENDED)
    assert wake.wait(0) == {COMMIT, ENDED}
    assert wake.wait(0.01) == set()


def test_a_commit_rings_within_moments(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "orders", ROWS)
    wake = Wake()
    watcher = Watcher(wake)
    watcher.watch([Location.of(tmp_path / "orders")])
    time.sleep(0.3)
    wake.wait(0)
    started = time.perf_counter()
    write_deltalake(tmp_path / "orders", ROWS, mode="append")
    assert COMMIT in wake.wait(10)
    assert time.perf_counter() - started < 2
    watcher.close()


def test_tables_can_be_watched_later_and_no_longer(tmp_path: Path) -> None:
    places = [Location.of(tmp_path / name) for name in ("first", "second")]
    for place in places:
        write_deltalake(place.uri, ROWS)
    wake = Wake()
    watcher = Watcher(wake)
    watcher.watch(places[:1])
    watcher.watch(places[1:])
    time.sleep(0.3)
    assert wake.wait(0) == {COMMIT}, "what came before it began is looked for once"
    write_deltalake(places[0].uri, ROWS, mode="append")
    assert wake.wait(0.3) == set()
    write_deltalake(places[1].uri, ROWS, mode="append")
    assert COMMIT in wake.wait(10)
    watcher.close()


def test_files_that_are_no_commits_do_not_ring(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "orders", ROWS)
    wake = Wake()
    watcher = Watcher(wake)
    watcher.watch([Location.of(tmp_path / "orders")])
    time.sleep(0.3)
    wake.wait(0)
    (tmp_path / "orders/_delta_log/.tmp").write_text("x")
    (tmp_path / "orders/part.parquet").write_text("x")
    assert wake.wait(0.3) == set()
    watcher.close()


def test_what_cannot_be_watched_is_not_an_error(tmp_path: Path) -> None:
    watcher = Watcher(Wake())
    watcher.watch([Location.of(tmp_path / "nowhere"), Location.of("s3://bucket/table")])
    watcher.close()
