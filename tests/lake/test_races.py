"""Writers at the same time: every conflict is noticed, and no update is lost."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pyarrow.parquet as pq

from tests.lake.tables import delta_rs_contents, entries, numbers_table, write_numbers
from trickle.errors import ConcurrentModification
from trickle.lake.commit import TableCommit, commit
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot, open_snapshot

WRITERS, INCREMENTS = 4, 25


def replacing(table: Snapshot, number: int) -> TableCommit:
    """The commit that puts a number in the place of all that is there."""
    file = write_numbers(table.location, [number], f"data-{uuid4().hex}/part.parquet")
    return TableCommit(table.location, table.version, adds=(file,), removes=table.files)


def count_up(place: str) -> int:
    """Read the number, write the next one, again when somebody else came first. Runs in a process of its own."""
    conflicts = 0
    for _ in range(INCREMENTS):
        while True:
            table = open_snapshot(Location.of(place))
            current = pq.read_table(Path(place, table.files[0].path), partitioning=None).column("id")[0].as_py()
            try:
                commit(replacing(table, current + 1))
                break
            except ConcurrentModification:
                conflicts += 1
    return conflicts


def test_processes_that_count_together_lose_no_increment(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [0])
    # delta-rs hangs after a fork.
    with ProcessPoolExecutor(WRITERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        conflicts = sum(pool.map(count_up, [str(tmp_path)] * WRITERS))
    assert delta_rs_contents(table.location) == {(WRITERS * INCREMENTS,): 1}
    assert open_snapshot(table.location).version == table.version + WRITERS * INCREMENTS
    assert conflicts > 0, "the writers never met: the test shows nothing"


def test_of_many_threads_at_one_version_exactly_one_commits(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [0])
    together = Barrier(8)

    def attempt(number: int) -> bool:
        change = replacing(table, number)
        together.wait()
        try:
            commit(change)
        except ConcurrentModification:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, done in zip(range(8), pool.map(attempt, range(8)), strict=True) if done]
    assert len(won) == 1
    assert delta_rs_contents(table.location) == {(won[0],): 1}


def test_appends_tried_again_on_newer_versions_all_arrive(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [0])

    def add(number: int) -> int:
        file = write_numbers(table.location, [number], f"data-{number}/part.parquet")
        change = TableCommit(table.location, table.version, adds=(file,))
        while True:
            try:
                return commit(change)
            except ConcurrentModification:
                change = replace(change, read_version=open_snapshot(table.location).version)

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(add, range(1, 21)))
    assert sorted(versions) == list(range(table.version + 1, table.version + 21))
    assert delta_rs_contents(table.location) == {(number,): 1 for number in range(21)}
    assert all(len(entries(table.location, version)) == 2 for version in versions)
