"""Drops the columns that nothing uses.

From the root, whose columns are all used, each operator asks its inputs for what is used above it and what it uses
itself. Scans then read only that. It changes no number of rows: the keys of an aggregate stay, all columns of a
DISTINCT stay, and the parts of a union keep equal columns. A relation of which only the number of rows matters keeps
one column.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Operator,
    Output,
    Project,
    Scan,
    TopK,
    UnionAll,
    Window,
)


def prune(tree: Operator) -> Operator:
    """The same relation, computed without columns that nobody uses."""
    return _exactly(_pruned(tree, frozenset(tree.columns)), tree.columns)


def _exactly(tree: Operator, columns: tuple[str, ...]) -> Operator:
    return tree if tree.columns == columns else Project(tree, Output.keep(columns))


def _pruned(node: Operator, used: AbstractSet[str]) -> Operator:
    """The operator with at least the used columns, and at least one."""
    match node:
        case Scan():
            fields = tuple(field for field in node.fields if field[1] in used)
            return replace(node, fields=fields or node.fields[:1])
        case Project():
            outputs = tuple(output for output in node.outputs if output.name in used) or node.outputs[:1]
            return _over(replace(node, outputs=outputs), frozenset())
        case Aggregate():
            calls = tuple(call for call in node.calls if call.name in used)
            return _over(replace(node, calls=calls if calls or node.keys else node.calls[:1]), frozenset())
        case Window():
            calls = tuple(call for call in node.calls if call.name in used)
            return _over(replace(node, calls=calls), used) if calls else _pruned(node.input, used)
        case Filter() | TopK() | Generate():
            return _over(node, used)
        case Join():
            needed = used | node.used
            return replace(node, left=_pruned(node.left, needed), right=_pruned(node.right, needed))
        case UnionAll():
            columns = tuple(name for name in node.columns if name in used) or node.columns[:1]
            return UnionAll(tuple(_exactly(_pruned(part, frozenset(columns)), columns) for part in node.parts))
        case _:
            return node.with_inputs(
                [_exactly(_pruned(child, set(child.columns)), child.columns) for child in node.inputs]
            )


def _over(node: Filter | TopK | Generate | Project | Aggregate | Window, used: AbstractSet[str]) -> Operator:
    return node.with_inputs([_pruned(node.input, used | node.used)])
