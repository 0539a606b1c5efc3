"""What a stream table depends on."""

from __future__ import annotations

from hypothesis import given

from tests.dag.graphs import streams
from trickle.dag.ancestors import ancestors
from trickle.dag.graph import closure
from trickle.dag.streams import Stream


@given(streams(cycles=True))
def test_ancestors_are_everything_along_the_sources(found: dict[int, Stream[int]]) -> None:
    reads = {node: stream.reads for node, stream in found.items()}
    assert ancestors(found, list(found), {}) == {node: closure(reads, [node]) for node in found}
