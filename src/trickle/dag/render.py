"""The graph as text for two drawing programs: Mermaid (Markdown pages, notebooks) and Graphviz.

Base tables are cylinders, stream tables boxes; the members of a unit lie in a frame. Arrows go the way the data goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trickle.dag.dag import Dag
from trickle.dag.streams import Key


def mermaid(dag: Dag[Key], names: Mapping[Key, str] | None = None) -> str:
    """A Mermaid flowchart.

    >>> from trickle.dag.dag import build
    >>> from trickle.dag.streams import Stream
    >>> print(mermaid(build({"totals": Stream(frozenset({"orders"}))})))
    flowchart LR
      n0[("orders")]
      n1["totals"]
      n0 --> n1
    """
    ids: dict[Key, str] = _ids(dag)

    def node(one: Key) -> str:
        left, right = ("[", "]") if one in dag.streams else ("[(", ")]")
        # The character that entities begin with goes first.
        text = _name(names, one).replace("#", "#35;").replace('"', "#quot;").replace("\n", " ")
        return f'{ids[one]}{left}"{text}"{right}'

    lines: list[str] = ["flowchart LR", *(f"  {node(one)}" for one in ids if one not in dag.streams)]
    for number, unit in enumerate(dag.units):
        if len(unit.members) == 1:
            lines.append(f"  {node(unit.members[0])}")
        else:
            lines.append(f'  subgraph u{number}["{_words(unit.kind)}"]')
            lines += [f"    {node(one)}" for one in unit.members]
            lines.append("  end")
    lines += [f"  {ids[source]} --> {ids[reader]}" for source, reader in _edges(dag)]
    return "\n".join(lines)


def dot(dag: Dag[Key], names: Mapping[Key, str] | None = None) -> str:
    """A Graphviz digraph.

    >>> from trickle.dag.dag import build
    >>> from trickle.dag.streams import Stream
    >>> print(dot(build({"totals": Stream(frozenset({"orders"}))})))
    digraph trickle {
      rankdir=LR;
      n0 [shape=cylinder, label="orders"];
      n1 [shape=box, label="totals"];
      n0 -> n1;
    }
    """
    ids: dict[Key, str] = _ids(dag)

    def node(one: Key) -> str:
        shape = "box" if one in dag.streams else "cylinder"
        text = _name(names, one).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return f'{ids[one]} [shape={shape}, label="{text}"];'

    lines: list[str] = [
        "digraph trickle {",
        "  rankdir=LR;",
        *(f"  {node(one)}" for one in ids if one not in dag.streams),
    ]
    for number, unit in enumerate(dag.units):
        if len(unit.members) == 1:
            lines.append(f"  {node(unit.members[0])}")
        else:
            lines.append(f'  subgraph cluster_{number} {{ label="{_words(unit.kind)}";')
            lines += [f"    {node(one)}" for one in unit.members]
            lines.append("  }")
    lines += [f"  {ids[source]} -> {ids[reader]};" for source, reader in _edges(dag)]
    return "\n".join([*lines, "}"])


def _ids(dag: Dag[Key]) -> dict[Key, str]:
    everything = {source for stream in dag.streams.values() for source in stream.reads} | dag.streams.keys()
    return {node: f"n{number}" for number, node in enumerate(sorted(everything))}


def _name(names: Mapping[Key, str] | None, node: Key) -> str:
    return str(node) if names is None else names.get(node, str(node))


def _words(kind: str) -> str:
    return kind.replace("_", " ").lower()


def _edges(dag: Dag[Key]) -> Iterator[tuple[Key, Key]]:
    for reader in sorted(dag.streams):
        for source in sorted(dag.streams[reader].reads):
            yield source, reader
