"""A publication that stops at any step: before or after, never between, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.killing import killed
from tests.publish.stories import Session, build, lake, position, published
from trickle.api import Trickle
from trickle.publish.following import Patience, follow
from trickle.publish.steps import Step, observe
from trickle.refresh.execute import refresh
from trickle.sql.names import table_name
from trickle.testing.faults import Fault

AFTER = {Step.COMMITTED, Step.NOTED}


@contextmanager
def raise_at(step: Step) -> Iterator[list[Step]]:
    seen: list[Step] = []

    def watch(reached: Step) -> None:
        seen.append(reached)
        if reached is step:
            raise Fault(f"at step {step}")

    observe(watch)
    try:
        yield seen
    finally:
        observe(None)


def write_and_refresh(t: Trickle) -> None:
    """A change that is committed in the lake and not yet published."""
    t.sql("INSERT INTO orders VALUES (9, 'bob', 1), (10, 'bob', 1)")
    t.sql("DELETE FROM orders WHERE id = 1")
    refresh(t.warehouse, [table_name("amounts")])


@pytest.mark.parametrize("step", list(Step))
def test_an_exception_leaves_before_or_after(t: Trickle, there: Session, dsn: str, step: Step) -> None:
    build(t)
    t.publish("amounts", dsn)
    before = published(there, "amounts"), position(there)
    write_and_refresh(t)
    with raise_at(step) as seen, pytest.raises(Fault):
        follow(t.warehouse)
    assert step in seen
    if step in AFTER:
        assert published(there, "amounts") == lake(t, "amounts")
    else:
        assert (published(there, "amounts"), position(there)) == before
    follow(t.warehouse)
    assert published(there, "amounts") == lake(t, "amounts")
    assert follow(t.warehouse) == []
    assert [row.status for row in t.list_publications()] == ["CURRENT"]
    assert [alert.event for alert in t.alerts()] == [], "by changes, and without a reload"


@pytest.mark.parametrize("step", list(Step))
def test_a_kill_leaves_before_or_after(t: Trickle, there: Session, dsn: str, step: Step) -> None:
    build(t)
    t.publish("amounts", dsn)
    before = published(there, "amounts")
    write_and_refresh(t)
    kill(t, step)
    assert published(there, "amounts") == (lake(t, "amounts") if step in AFTER else before)
    follow(t.warehouse)
    assert published(there, "amounts") == lake(t, "amounts")
    assert follow(t.warehouse) == []
    assert [alert.event for alert in t.alerts()] == []


@pytest.mark.parametrize("step", [Step.POSITIONED, Step.COMMITTED])
def test_a_first_copy_that_was_killed_is_finished_by_asking_again(
    t: Trickle, there: Session, dsn: str, step: Step
) -> None:
    build(t)
    kill(t, step, dsn)
    assert [row.status for row in t.list_publications()] == ["UNFINISHED"]
    assert (there.execute("SELECT to_regclass('public.amounts')").fetchone() == (None,)) == (step not in AFTER)
    t.publish("amounts", dsn)
    assert published(there, "amounts") == lake(t, "amounts")
    assert [row.status for row in t.list_publications()] == ["CURRENT"]


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.NOTED])
def test_a_first_copy_that_fails_leaves_nothing_or_all(t: Trickle, there: Session, dsn: str, step: Step) -> None:
    build(t)
    with raise_at(step), pytest.raises(Fault):
        t.publish("amounts", dsn)
    gone = there.execute("SELECT to_regclass('public.amounts')").fetchone() == (None,)
    assert gone == (step not in AFTER)
    t.publish("amounts", dsn)
    assert published(there, "amounts") == lake(t, "amounts")
    assert len(t.list_publications()) == 1


def test_several_at_once_apply_it_once(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("amounts", dsn)
    for _ in range(3):
        write_and_refresh(t)
        with ThreadPoolExecutor(4) as pool:
            done = [one for found in pool.map(lambda _: follow(t.warehouse), range(4)) for one in found]
        assert published(there, "amounts") == lake(t, "amounts")
        assert len(done) == 1
    assert [alert.event for alert in t.alerts()] == []


def test_what_failed_is_left_alone_for_a_while(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("amounts", dsn)
    there.execute("ALTER TABLE amounts ADD CHECK (customer <> 'bob' OR false) NOT VALID")
    write_and_refresh(t)
    patience = Patience()
    follow(t.warehouse, patience=patience)
    assert "a constraint of the PostgreSQL database" in str(t.list_publications()[0].last_error)
    there.execute("ALTER TABLE amounts DROP CONSTRAINT amounts_customer_check")
    assert follow(t.warehouse, patience=patience) == [], "it rests"
    patience.resting.clear()
    assert [one.rows_inserted for one in follow(t.warehouse, patience=patience)] == [2]
    assert published(there, "amounts") == lake(t, "amounts")


def kill(t: Trickle, step: Step, *address: str) -> None:
    killed("tests.publish.child", t.warehouse.engine.spark, t.warehouse.root.uri, step.value, *address)
