"""Drawings of the graph."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.dag.graphs import streams
from trickle.dag.dag import build
from trickle.dag.render import dot, mermaid
from trickle.dag.streams import Stream

DIAMOND = build(
    {
        2: Stream(frozenset({1})),
        3: Stream(frozenset({1})),
        4: Stream(frozenset({2, 3})),
    }
)
NAMES = {1: "orders", 2: "left", 3: 'the "right" one', 4: "top"}


def test_a_diamond_is_framed_in_mermaid() -> None:
    assert mermaid(DIAMOND, NAMES).splitlines() == [
        "flowchart LR",
        '  n0[("orders")]',
        '  subgraph u0["atomic group"]',
        '    n1["left"]',
        '    n2["the #quot;right#quot; one"]',
        '    n3["top"]',
        "  end",
        "  n0 --> n1",
        "  n0 --> n2",
        "  n1 --> n3",
        "  n2 --> n3",
    ]


def test_a_diamond_is_framed_in_dot() -> None:
    text = dot(DIAMOND, NAMES)
    assert '  subgraph cluster_0 { label="atomic group";' in text
    assert '    n2 [shape=box, label="the \\"right\\" one"];' in text
    assert text.count("{") == text.count("}")


@given(streams(cycles=True), st.text(max_size=5))
def test_every_edge_and_every_table_is_drawn_once_whatever_its_name(found: dict[int, Stream[int]], name: str) -> None:
    dag = build(found)
    names = {node: f"{name}{node}" for node in range(20)}
    edges = sum(len(stream.reads) for stream in found.values())
    nodes = len(found.keys() | {source for stream in found.values() for source in stream.reads})
    arrows = re.findall(r"^  n\d+ -+> n\d+;?$", mermaid(dag, names), re.MULTILINE)
    assert len(arrows) == edges == len(re.findall(r"^  n\d+ -> n\d+;$", dot(dag, names), re.MULTILINE))
    assert len(re.findall(r"^ +n\d+\[", mermaid(dag, names), re.MULTILINE)) == nodes
    assert len(re.findall(r"^ +n\d+ \[shape", dot(dag, names), re.MULTILINE)) == nodes
