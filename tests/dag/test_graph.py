"""Ways, closures and orders in the dependency graph."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.dag.graph import closure, order, path, reverse

DIAMOND = {"top": ["left", "right"], "left": ["base"], "right": ["base"]}


def test_a_way_leads_along_the_sources() -> None:
    assert path(DIAMOND, "top", "base") in (["top", "left", "base"], ["top", "right", "base"])
    assert path(DIAMOND, "base", "top") is None
    assert path(DIAMOND, "left", "right") is None


def test_the_way_from_a_node_to_itself_is_the_node() -> None:
    assert path(DIAMOND, "base", "base") == ["base"]
    assert path({}, "alone", "alone") == ["alone"]


def test_a_search_in_a_cycle_ends() -> None:
    assert path({"a": ["b"], "b": ["a"]}, "a", "elsewhere") is None
    assert closure({"a": ["b"], "b": ["a"]}, ["a"]) == {"a", "b"}


def test_a_closure_leaves_the_start_out_unless_it_is_reached() -> None:
    assert closure(DIAMOND, ["top"]) == {"left", "right", "base"}
    assert closure(reverse(DIAMOND), ["base"]) == {"left", "right", "top"}
    assert closure(DIAMOND, []) == set()


def test_a_deep_chain_needs_no_stack() -> None:
    chain = {number: [number + 1] for number in range(50_000)}
    way = path(chain, 0, 50_000)
    assert way is not None
    assert len(way) == 50_001
    assert order(chain, [0, 50_000]) == [50_000, 0]


def test_order_respects_what_lies_between() -> None:
    assert order(DIAMOND, ["top", "base"]) == ["base", "top"]
    assert order(DIAMOND, ["alone"]) == ["alone"]
    assert order(DIAMOND, []) == []


edges = st.dictionaries(st.integers(1, 12), st.sets(st.integers(0, 11), max_size=4), max_size=12).map(
    lambda found: {node: {source for source in sources if source < node} for node, sources in found.items()}
)


@given(edges, st.sets(st.integers(0, 12)))
def test_in_every_order_a_node_comes_after_all_that_it_reads(reads: dict[int, set[int]], nodes: set[int]) -> None:
    found = order(reads, nodes)
    assert sorted(found) == sorted(nodes)
    place = {node: number for number, node in enumerate(found)}
    for node in nodes:
        for source in closure(reads, [node]) & nodes:
            assert place[source] < place[node]


@given(edges)
def test_turning_the_edges_twice_gives_the_same_edges(reads: dict[int, set[int]]) -> None:
    assert reverse(reverse(reads)) == {node: sources for node, sources in reads.items() if sources}


@pytest.mark.parametrize("start, goal", [("top", "base"), ("left", "base"), ("top", "left")])
def test_every_step_of_a_way_is_an_edge(start: str, goal: str) -> None:
    way = path(DIAMOND, start, goal)
    assert way is not None
    assert all(after in DIAMOND[before] for before, after in pairwise(way))
