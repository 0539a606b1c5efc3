"""What a tick decides: who is due, who rests, who runs after whom, who is held and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.world import START, World, told
from trickle.dag.streams import Group
from trickle.scheduler.tick import plan
from trickle.settings import Settings

CHAIN = World({"daily": ["orders"], "weekly": ["daily"]})
DIAMOND = {"left": ["orders"], "right": ["orders"], "top": ["left", "right"]}


def test_what_has_not_changed_is_marked_and_not_run() -> None:
    story = told(CHAIN, CHAIN.state(after=6))
    assert (story.ran, story.fresh, story.held) == ([], {"daily", "weekly"}, {})


def test_what_is_not_due_is_left_alone() -> None:
    story = told(CHAIN, CHAIN.state(after=4, moved=["orders"]))
    assert (story.ran, story.fresh) == ([], set())
    made = plan(CHAIN.state(after=4, moved=["orders"]))
    assert made.next_at is not None
    assert (made.next_at - START).total_seconds() == 5


def test_a_reader_goes_in_the_same_tick_as_what_it_reads() -> None:
    story = told(CHAIN, CHAIN.state(after=6, moved=["orders"]))
    assert story.ran == [("daily",), ("weekly",)]


def test_a_reader_rests_when_what_it_reads_did_not_change() -> None:
    story = told(CHAIN, CHAIN.state(after=6, moved=["orders"]), changes=False)
    assert (story.ran, story.fresh) == ([("daily",)], {"weekly"})


def test_a_calculated_reader_follows_before_it_is_due() -> None:
    world = World(CHAIN.reads, schedules={"weekly": "calculated"})
    story = told(world, world.state(after=6, moved=["orders"]))
    assert story.ran == [("daily",), ("weekly",)]
    assert told(world, world.state(after=6, moved=["orders"]), changes=False).fresh == set()


def test_a_reader_with_a_schedule_of_its_own_does_not_follow() -> None:
    world = World(CHAIN.reads, schedules={"weekly": "1h"})
    assert told(world, world.state(after=6, moved=["orders"])).ran == [("daily",)]


def test_a_calculated_source_is_as_often_as_its_reader() -> None:
    world = World(CHAIN.reads, schedules={"daily": "calculated", "weekly": "30s"})
    assert told(world, world.state(after=29, moved=["orders"])).ran == []
    assert told(world, world.state(after=30, moved=["orders"])).ran == [("daily",), ("weekly",)]


def test_a_table_that_was_never_filled_is_due_at_once() -> None:
    story = told(CHAIN, CHAIN.state(unfilled=["daily"]))
    assert story.ran[0] == ("daily",)


def test_a_table_that_somebody_is_about_to_fill_is_left_to_them() -> None:
    assert told(CHAIN, CHAIN.state(unfilled=["daily", "weekly"], left_alone=["daily", "weekly"])).ran == []


def test_a_failure_holds_what_reads_it_and_nobody_else() -> None:
    world = World({"daily": ["orders"], "weekly": ["daily", "prices"], "other": ["prices"]})
    story = told(world, world.state(after=6, moved=["orders", "prices"]), fails=["daily"])
    assert sorted(story.ran) == [("daily",), ("other",)]
    assert story.held == {"weekly": "upstream daily is held: its refresh failed"}
    assert "weekly" not in story.fresh


def test_a_suspended_table_holds_its_readers_although_it_is_not_due() -> None:
    world = World(CHAIN.reads, schedules={"daily": "1h"})
    story = told(world, world.state(after=6, moved=["orders"], suspended=["daily"]))
    assert story.held == {"weekly": "upstream daily is held: it is suspended"}


def test_a_suspended_table_without_changes_holds_nobody() -> None:
    story = told(CHAIN, CHAIN.state(after=6, suspended=["daily"]))
    assert (story.held, story.fresh) == ({}, {"daily", "weekly"})


def test_a_blown_fuse_holds_all_below_it() -> None:
    world = World({**CHAIN.reads, "yearly": ["weekly"]})
    story = told(world, world.state(after=6, moved=["orders"], blown=["daily"]))
    assert story.ran == []
    assert story.held["daily"].startswith("fuse of daily is blown")
    assert story.held["weekly"].startswith("upstream daily is held: fuse of daily is blown")
    assert story.held["yearly"].startswith("upstream weekly is held: upstream daily is held")


def test_a_gated_source_holds_all_below_it() -> None:
    story = told(CHAIN, CHAIN.state(after=6, moved=["orders"], gated=["orders"]))
    assert story.ran == []
    assert "source orders is gated by etl" in story.held["daily"]


def test_a_diamond_is_one_unit_due_with_its_fastest_member() -> None:
    world = World(DIAMOND, schedules={"left": "5s", "right": "1h", "top": "1h"})
    assert told(world, world.state(after=6, moved=["orders"])).ran == [("left", "right", "top")]


def test_the_slowest_policy_waits_for_all_members() -> None:
    world = World(
        DIAMOND,
        schedules={"left": "5s", "right": "1m", "top": "5s"},
        options={"top": {"diamond_schedule_policy": "slowest"}},
    )
    assert told(world, world.state(after=6, moved=["orders"])).ran == []
    assert told(world, world.state(after=60, moved=["orders"])).ran == [("left", "right", "top")]


def test_a_held_member_holds_its_unit() -> None:
    world = World(DIAMOND)
    story = told(world, world.state(after=6, moved=["orders"], blown=["left"]))
    assert story.ran == []
    assert story.held["left"].startswith("fuse of left is blown")
    assert "left of its unit is held back by its fuse" in story.held["right"]


def test_a_declared_group_moves_together() -> None:
    world = World({"a": ["x"], "b": ["y"]}, groups=[Group("both", frozenset({"a", "b"}))])
    assert told(world, world.state(after=6, moved=["x"])).ran == [("a", "b")]


@pytest.mark.parametrize("tier, due_after", [("hot", 5), ("warm", 10), ("cold", 50)])
def test_tiers_stretch_the_schedule(tier: str, due_after: float) -> None:
    world = World({"daily": ["orders"]}, options={"daily": {"tier": tier}})
    assert told(world, world.state(after=due_after - 1, moved=["orders"])).ran == []
    assert told(world, world.state(after=due_after, moved=["orders"])).ran == [("daily",)]


def test_a_frozen_table_is_never_due_and_does_not_follow() -> None:
    world = World(CHAIN.reads, schedules={"weekly": "calculated"}, options={"weekly": {"tier": "frozen"}})
    assert told(world, world.state(after=10**6, moved=["orders"])).ran == [("daily",)]


def test_tiers_can_be_turned_off() -> None:
    world = World(
        {"daily": ["orders"]}, options={"daily": {"tier": "cold"}}, settings=Settings(tiered_scheduling=False)
    )
    assert told(world, world.state(after=6, moved=["orders"])).ran == [("daily",)]


def test_what_cannot_keep_its_schedule_is_due_less_often() -> None:
    assert told(CHAIN, CHAIN.state(after=6, moved=["orders"], factors={"daily": 4})).ran == []
    assert told(CHAIN, CHAIN.state(after=20, moved=["orders"], factors={"daily": 4})).ran[0] == ("daily",)


def test_what_has_rested_long_enough_does_not_wait() -> None:
    """Marked as fresh a second ago and computed long before: it is due as soon as its source changes."""
    world = World({"daily": ["orders"]}, schedules={"daily": "1m"})
    state = world.state(after=301, moved=["orders"], refreshed={"daily": 300}, rested={"daily": 0})
    assert told(world, state).ran == [("daily",)]
    still = world.state(after=301, refreshed={"daily": 300}, rested={"daily": 0})
    assert told(world, still).fresh == set(), "and it is not marked more often than its schedule asks"


def test_a_cron_schedule_does_not_count_rest() -> None:
    world = World({"daily": ["orders"]}, schedules={"daily": "@hourly"})
    state = world.state(after=3700, moved=["orders"], refreshed={"daily": 3601}, rested={"daily": 0})
    assert told(world, state).ran == []


def test_what_is_being_worked_on_is_left_out() -> None:
    story = told(CHAIN, CHAIN.state(after=6, moved=["orders"]), busy=["daily"])
    assert story.ran == []


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Random graphs over two base tables."""
    count = draw(st.integers(1, 7))
    reads = {}
    for number in range(count):
        known = ["x", "y", *(f"t{n}" for n in range(number))]
        reads[f"t{number}"] = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    options = {name: {"diamond_consistency": draw(st.sampled_from(["atomic", "none"]))} for name in reads}
    schedules = {name: draw(st.sampled_from(["5s", "1m", "calculated"])) for name in reads}
    return World(reads, schedules, options)


@given(worlds(), st.data())
def test_every_table_that_is_due_runs_rests_or_is_held(world: World, data: st.DataObject) -> None:
    names = sorted(world.reads)
    moved = data.draw(st.lists(st.sampled_from(["x", "y"]), unique=True))
    fails = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    suspended = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    after = data.draw(st.sampled_from([0, 6, 61]))
    state = world.state(after, moved=[m for m in moved if m in world.ids], suspended=suspended)
    story = told(world, state, fails=fails)
    ran = [name for unit in story.ran for name in unit]
    assert len(ran) == len(set(ran)), "nothing runs twice"
    assert not set(ran) & set(story.held), "what is held does not run"
    assert not set(ran) & set(story.fresh), "what runs is not marked"
    assert not set(ran) & set(suspended)
    made = plan(state)
    units = {name: unit for unit in story.ran for name in unit}
    for place, unit in enumerate(story.ran):
        for name in unit:
            for source in world.reads[name]:
                if source in units and source not in unit:
                    assert story.ran.index(units[source]) < place, "each comes after those it reads"
                failed = [m for m in units.get(source, ()) if m in fails and source not in unit]
                assert not failed, "nothing runs on top of a failure"
    for name in names:
        if made.due[world.ids[name]].due and world.ids[name] in made.idle:
            assert name in story.fresh
    if after == 61 and not fails and not suspended and moved:
        below = {n for n in names if world.ids.get(moved[0]) in state.definitions.dag.above[world.ids[n]]}
        assert below <= set(ran), "all that a change reaches runs when everything is due"
