"""Strongly connected components against the definition."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trickle.dag.components import components, cycle_path, cycles
from trickle.dag.graph import closure

graphs = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 12), max_size=4), max_size=10)


@given(graphs)
def test_two_nodes_are_in_one_component_when_each_reaches_the_other(reads: dict[int, list[int]]) -> None:
    home = {node: number for number, found in enumerate(components(reads)) for node in found}
    assert sorted(home) == sorted(reads)
    for one in reads:
        for other in reads:
            mutual = other in closure(reads, [one]) and one in closure(reads, [other])
            assert (home[one] == home[other]) == (mutual or one == other)


@given(graphs)
def test_components_come_after_those_that_they_read(reads: dict[int, list[int]]) -> None:
    home = {node: number for number, found in enumerate(components(reads)) for node in found}
    for node, sources in reads.items():
        assert all(home[source] <= home[node] for source in sources if source in home)


@given(graphs)
def test_the_way_of_a_cycle_leads_along_its_sources_back_to_its_begin(reads: dict[int, list[int]]) -> None:
    way = cycle_path(reads)
    assert (way is None) == all(node not in closure(reads, [node]) for node in reads)
    if way is not None:
        assert len(way) > 1
        assert way[0] == way[-1]
        assert all(after in reads[before] for before, after in pairwise(way))


def test_a_node_that_reads_itself_is_a_cycle_and_a_single_node_is_not() -> None:
    assert cycles({"a": ["a"], "b": ["a"]}) == [["a"]]
    assert cycle_path({"a": ["a"]}) == ["a", "a"]


def test_a_deep_chain_needs_no_stack() -> None:
    chain = {number: [number + 1] for number in range(50_000)}
    assert len(components(chain)) == 50_000
    assert cycle_path(chain) is None
    chain[50_000] = [0]
    assert len(components(chain)) == 1
