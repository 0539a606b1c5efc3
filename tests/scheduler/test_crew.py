"""Workers: as many as allowed, the urgent first, quotas that leave room for others."""

from __future__ import annotations

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.crew import Crew, Place, Task, choose

SALES, STOCK = frozenset({"sales"}), frozenset({"stock"})


def test_the_urgent_come_first_and_among_equals_the_first() -> None:
    waiting = [Place(3, 1, SALES), Place(1, 3, SALES), Place(1, 2, SALES)]
    assert choose(waiting, [], quota=0) == 2


def test_a_schema_at_its_quota_lets_others_pass() -> None:
    waiting = [Place(0, 1, SALES), Place(3, 2, STOCK)]
    assert choose(waiting, [Place(1, 0, SALES)], quota=1) == 1
    assert choose(waiting, [Place(1, 0, SALES)], quota=2) == 0


def test_a_schema_at_its_quota_may_have_workers_that_nobody_else_wants() -> None:
    assert choose([Place(1, 1, SALES)], [Place(1, 0, SALES)], quota=1) == 0


places = st.builds(Place, st.integers(0, 3), st.integers(0, 9), st.sampled_from([SALES, STOCK, SALES | STOCK]))


@given(st.lists(places, min_size=1), st.lists(places), st.integers(0, 3))
def test_no_one_is_over_quota_while_another_is_not(waiting: list[Place], running: list[Place], quota: int) -> None:
    def over(place: Place) -> bool:
        return quota > 0 and any(sum(s in other.schemas for other in running) >= quota for s in place.schemas)

    chosen = waiting[choose(waiting, running, quota)]
    assert not over(chosen) or all(over(place) for place in waiting)
    assert all(chosen.rank <= place.rank for place in waiting if over(place) == over(chosen))


def _task(crew: Crew, key: str, seconds: float, ended: list[tuple[str, object]], rank: int = 1) -> Task:
    def work() -> list[RefreshResult]:
        time.sleep(seconds)
        if key == "bad":
            raise ValueError("bad")
        return []

    return Task(
        key, key, Place(rank, 0, SALES), work, lambda r: ended.append((key, r)), lambda: ended.append((key, None))
    )


def test_as_many_side_by_side_as_allowed() -> None:
    crew, ended = Crew(), list[tuple[str, object]]()
    for key in "abc":
        crew.put(_task(crew, key, 0.05, ended))
    crew.start(workers=2, quota=0)
    assert len(crew.running) == 2
    while not crew.is_idle:
        crew.collect(None)
        crew.start(workers=2, quota=0)
    assert sorted(key for key, _ in ended) == ["a", "b", "c"]
    crew.close()


def test_one_that_fails_does_not_stop_the_others() -> None:
    crew, ended = Crew(), list[tuple[str, object]]()
    for key in ("bad", "good"):
        crew.put(_task(crew, key, 0.01, ended))
    crew.start(workers=1, quota=0)
    while not crew.is_idle:
        crew.collect(None)
        crew.start(workers=1, quota=0)
    assert isinstance(dict(ended)["bad"], ValueError)
    assert dict(ended)["good"] == []
    crew.close()


def test_stopping_takes_back_what_waits_and_ends_what_runs() -> None:
    crew, ended = Crew(), list[tuple[str, object]]()
    crew.put(_task(crew, "runs", 0.05, ended))
    crew.start(workers=1, quota=0)
    crew.put(_task(crew, "waits", 0.05, ended))
    crew.stopping.set()
    crew.start(workers=2, quota=0)
    crew.drop_waiting()
    crew.close()
    crew.collect()
    assert ended == [("waits", None), ("runs", [])]


def test_the_bell_rings_when_a_unit_ends() -> None:
    rung = threading.Event()
    crew, ended = Crew(rung.set), list[tuple[str, object]]()
    crew.put(_task(crew, "a", 0, ended))
    crew.start(workers=1, quota=0)
    assert rung.wait(5)
    crew.close()
