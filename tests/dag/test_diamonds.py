"""Diamonds: known shapes, and random graphs against a slow definition."""

from __future__ import annotations

from hypothesis import given

from tests.dag.graphs import streams
from trickle.dag.dag import build
from trickle.dag.diamonds import Diamond
from trickle.dag.streams import Stream


def reading(**reads: str) -> dict[str, Stream[str]]:
    return {node: Stream(frozenset(sources.split())) for node, sources in reads.items()}


def only_diamond(**reads: str) -> Diamond[str]:
    (found,) = build(reading(**reads)).diamonds.values()
    return found


def test_two_ways_from_a_base_table_meet() -> None:
    found = only_diamond(left="base", right="base", top="left right")
    assert found == Diamond("top", frozenset({"left", "right", "top"}), frozenset({"base"}))


def test_a_base_table_read_directly_and_through_another_is_a_diamond() -> None:
    assert only_diamond(totals="orders", report="orders totals").members == {"totals", "report"}


def test_the_common_part_is_not_a_member() -> None:
    found = only_diamond(clean="raw", left="clean", right="clean", top="left right")
    assert found.members == {"left", "right", "top"}
    assert found.shared == {"clean"}


def test_everything_on_a_long_way_is_a_member() -> None:
    found = only_diamond(a="base", b="a", c="b", top="c base other")
    assert found.members == {"a", "b", "c", "top"}


def test_ways_from_different_base_tables_never_part() -> None:
    assert build(reading(left="orders", right="lines", top="left right")).diamonds == {}


def test_a_side_table_below_a_member_is_outside() -> None:
    found = only_diamond(left="base", right="base", top="left right", aside="left")
    assert "aside" not in found.members


def test_a_table_that_reads_only_what_is_not_common_is_outside() -> None:
    found = only_diamond(rates="bank", left="base rates", right="base", top="left right")
    assert "rates" not in found.members


def ways_up(streams: dict[int, Stream[int]], node: int) -> list[tuple[int, ...]]:
    """All ways from a node along its sources, as far as they go, and all their beginnings."""
    if node not in streams:
        return [(node,)]
    return [(node,), *((node, *way) for source in streams[node].reads for way in ways_up(streams, source))]


@given(streams(most=7))
def test_a_diamond_has_all_that_lies_on_two_ways_that_meet_again(found: dict[int, Stream[int]]) -> None:
    dag = build(found)
    for node, stream in found.items():
        members = {node}
        for first in stream.reads:
            for second in stream.reads - {first}:
                reach = [{way[-1] for way in ways_up(found, one)} for one in (first, second)]
                common = reach[0] & reach[1]
                for way in ways_up(found, first):
                    if way[-1] in common:
                        members |= {one for one in way if one not in common}
        diamond = dag.diamonds.get(node)
        assert members == ({node} if diamond is None else diamond.members)
        if diamond is not None:
            assert diamond.atomic == stream.atomic
            assert diamond.shared
            assert diamond.shared.isdisjoint(diamond.members)
