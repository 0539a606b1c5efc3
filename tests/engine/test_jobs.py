"""Counting the Spark jobs of a block."""

from __future__ import annotations

import threading

import pytest

from trickle.engine import Engine

ONE_JOB = "SELECT id FROM range(0, 3, 1, 1)"


def run(engine: Engine, text: str) -> None:
    engine.sql(text).collect()


@pytest.mark.portable
def test_a_job_is_counted_on_classic_and_not_known_on_connect(engine: Engine, kind: str) -> None:
    with engine.count_jobs() as count:
        run(engine, ONE_JOB)
    assert count.jobs == (None if kind == "connect" else 1)


def test_analysis_runs_no_job(engine: Engine) -> None:
    with engine.count_jobs() as count:
        assert engine.sql(ONE_JOB).schema.names == ["id"]
    assert count.jobs == 0


def test_jobs_of_broadcasts_and_subqueries_are_counted(engine: Engine) -> None:
    with engine.count_jobs() as count:
        run(engine, "SELECT * FROM range(9) a JOIN range(9) b USING (id) WHERE id > (SELECT avg(id) FROM range(5))")
    assert count.jobs is not None
    assert count.jobs >= 3


def test_jobs_outside_the_block_are_not_counted(engine: Engine) -> None:
    run(engine, ONE_JOB)
    with engine.count_jobs() as count:
        run(engine, ONE_JOB)
    run(engine, ONE_JOB)
    assert count.jobs == 1


def test_an_inner_block_counts_for_the_outer_one_too(engine: Engine) -> None:
    with engine.count_jobs() as outer:
        run(engine, ONE_JOB)
        with engine.count_jobs() as inner:
            run(engine, ONE_JOB)
        run(engine, ONE_JOB)
    assert (outer.jobs, inner.jobs) == (3, 1)


def test_a_failed_block_is_counted_and_leaves_the_thread_as_it_was(engine: Engine) -> None:
    context = engine.spark.sparkContext
    context.setJobGroup("mine", "a group of the caller's")
    with pytest.raises(RuntimeError), engine.count_jobs() as count:
        run(engine, ONE_JOB)
        raise RuntimeError
    assert count.jobs == 1
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"


def test_threads_count_their_own_jobs_only(engine: Engine) -> None:
    counts: dict[int, int | None] = {}
    both_inside = threading.Barrier(2, timeout=30)

    def work(jobs: int) -> None:
        with engine.count_jobs() as count:
            both_inside.wait()
            for _ in range(jobs):
                run(engine, ONE_JOB)
            both_inside.wait()
        counts[jobs] = count.jobs

    threads = [threading.Thread(target=work, args=(jobs,)) for jobs in (1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {1: 1, 4: 4}


def test_a_block_without_spark_counts_none_and_starts_nothing() -> None:
    engine = Engine.open("local[2]")
    with engine.count_jobs() as count:
        pass
    assert count.jobs == 0
    assert not engine.started


def test_jobs_are_counted_where_the_session_does_not_tell_their_number(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._counter, "_scheduler", (engine.spark.sparkContext, None))
    with engine.count_jobs() as count:
        run(engine, ONE_JOB)
    assert count.jobs == 1
