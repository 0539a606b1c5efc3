"""Units: what belongs together, and in which order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.dag.graphs import groups, streams
from trickle.dag.components import cycle_path
from trickle.dag.dag import Dag, build
from trickle.dag.streams import READ_COMMITTED, REPEATABLE_READ, Group, Stream
from trickle.dag.units import Unit, UnitKind


def reading(**reads: str) -> dict[str, Stream[str]]:
    return {node: Stream(frozenset(sources.split())) for node, sources in reads.items()}


def kinds(dag: Dag[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(unit.kind.value, unit.members) for unit in dag.units]


def test_tables_in_a_row_are_units_of_their_own_in_their_order() -> None:
    assert kinds(build(reading(a="base", c="b", b="a"))) == [
        ("SINGLETON", ("a",)),
        ("SINGLETON", ("b",)),
        ("SINGLETON", ("c",)),
    ]


def test_diamonds_that_share_a_table_are_one_unit() -> None:
    dag = build(reading(a="base", b="base", c="base", one="a b", two="b c"))
    assert kinds(dag) == [("ATOMIC_GROUP", ("a", "b", "c", "one", "two"))]


def test_a_diamond_whose_top_does_not_want_it_is_none() -> None:
    tables = reading(left="base", right="base", top="left right")
    dag = build(tables | {"top": Stream(frozenset({"left", "right"}), atomic=False)})
    assert [unit.kind for unit in dag.units] == [UnitKind.SINGLETON] * 3
    assert not dag.diamonds["top"].atomic


def test_a_declared_group_that_overlaps_a_diamond_takes_it_in() -> None:
    tables = reading(left="base", right="base", top="left right", other="elsewhere")
    (unit,) = build(tables, [Group("g", frozenset({"top", "other"}), REPEATABLE_READ)]).units
    assert unit == Unit(
        UnitKind.REFRESH_GROUP, ("left", "other", "right", "top"), REPEATABLE_READ, "left+other+right+top"
    )


def test_a_table_between_two_members_of_a_group_goes_with_them() -> None:
    dag = build(reading(a="base", b="a", c="b"), [Group("g", frozenset({"a", "c"}))])
    assert kinds(dag) == [("REFRESH_GROUP", ("a", "b", "c"))]


def test_a_cycle_is_a_unit_and_what_reads_it_waits() -> None:
    dag = build(reading(a="base b", b="a", after="b"))
    assert [(unit.kind.value, set(unit.members)) for unit in dag.units] == [
        ("CYCLE", {"a", "b"}),
        ("SINGLETON", {"after"}),
    ]
    assert dag.cycles == (("a", "b"),)
    assert dag.waits_for["after"] == {"a+b"}


def test_a_table_that_reads_itself_is_a_cycle() -> None:
    assert kinds(build(reading(a="a base"))) == [("CYCLE", ("a",))]


def test_a_group_with_one_table_left_is_a_single_table() -> None:
    dag = build(reading(a="base"), [Group("g", frozenset({"a", "dropped"}))])
    assert kinds(dag) == [("SINGLETON", ("a",))]


@given(st.data(), streams(cycles=True))
def test_every_stream_table_is_in_one_unit_after_all_that_it_reads(
    data: st.DataObject, found: dict[int, Stream[int]]
) -> None:
    dag = build(found, data.draw(groups(found)))
    assert sorted(member for unit in dag.units for member in unit.members) == sorted(found)
    circular = {node for cycle in dag.cycles for node in cycle}
    place = {node: place for place, node in enumerate(member for unit in dag.units for member in unit.members)}
    for node, stream in found.items():
        for source in stream.reads & found.keys():
            together = {node, source} <= circular and node in dag.above[source]
            assert place[source] < place[node] or together


@given(st.data(), streams(cycles=True))
def test_units_wait_only_for_units_before_them(data: st.DataObject, found: dict[int, Stream[int]]) -> None:
    dag = build(found, data.draw(groups(found)))
    assert cycle_path(dag.waits_for) is None
    seen: set[str] = set()
    for unit in dag.units:
        reads = {source for member in unit.members for source in found[member].reads if source in found}
        assert dag.waits_for[unit.key] == {dag.unit_of(source).key for source in reads} - {unit.key}
        assert dag.waits_for[unit.key] <= seen
        seen.add(unit.key)
    assert len(seen) == len(dag.units)


@given(st.data(), streams(cycles=True))
def test_diamonds_and_groups_lie_in_one_unit_each(data: st.DataObject, found: dict[int, Stream[int]]) -> None:
    declared = data.draw(groups(found))
    dag = build(found, declared)
    sets = [diamond.members for diamond in dag.diamonds.values() if diamond.atomic]
    for together in [*sets, *(group.members & found.keys() for group in declared), *map(frozenset, dag.cycles)]:
        assert len({dag.unit_of(member).key for member in together}) <= 1
    for unit in dag.units:
        inside = [group for group in declared if not group.members.isdisjoint(unit.members)]
        strict = any(group.isolation == REPEATABLE_READ for group in inside)
        assert unit.isolation == (REPEATABLE_READ if strict else READ_COMMITTED)


@given(streams())
def test_without_groups_a_unit_of_several_is_no_larger_than_its_diamonds(found: dict[int, Stream[int]]) -> None:
    dag = build(found)
    inside = {member for diamond in dag.diamonds.values() if diamond.atomic for member in diamond.members}
    for unit in dag.units:
        # A table between two diamonds may be drawn in so that units have an order; alone it is a unit of its own.
        if len(unit.members) > 1:
            assert inside.intersection(unit.members)
        else:
            assert unit.kind is UnitKind.SINGLETON
