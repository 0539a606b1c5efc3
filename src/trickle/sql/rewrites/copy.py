"""A subtree that is used a second time has other names the second time: every name in a tree is made once.

All names that the subtree makes are replaced through one mapping, so that columns which the parts of a union share are
still shared. What the subtree takes from the outside keeps its name, and so does a reference to a recursion around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.operators import (
    Aggregate,
    Apply,
    Expr,
    Filter,
    Generate,
    Join,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    Step,
    TopK,
    UnionAll,
    Values,
    Window,
    renamed,
    walk,
)
from trickle.sql.rewrites.names import Names

# Scans add these by themselves: they cannot have other names.
_FIXED = frozenset((WEIGHT, FILE, ROW))


def fresh_copy(tree: Operator, names: Names) -> tuple[Operator, dict[str, str]]:
    """The same relation with all names new, and how the old ones are called now."""
    columns: dict[str, str] = {}
    recursions: dict[str, str] = {}
    for node in walk(tree):
        for name in node.columns:
            if name not in columns and name not in _FIXED:
                columns[name] = names.fresh(name)
        if isinstance(node, Recursion):
            recursions[node.name] = names.fresh(node.name)
    return renamed_tree(tree, columns, recursions), columns


def renamed_tree(tree: Operator, columns: Mapping[str, str], recursions: Mapping[str, str] | None = None) -> Operator:
    """The tree with other names, both where they are made and where they are used."""
    return _Renaming(columns, recursions or {}).tree(tree)


@dataclass(frozen=True)
class _Renaming:
    columns: Mapping[str, str]
    recursions: Mapping[str, str] = field(default_factory=dict)

    def tree(self, node: Operator) -> Operator:
        inputs = [self.tree(child) for child in node.inputs]
        match node:
            case Scan() | Step():
                return replace(node, fields=tuple((column, self.name(name)) for column, name in node.fields))
            case Values():
                rows = tuple(tuple(map(self.value, row)) for row in node.rows)
                return Values(self.all(node.names), rows)
            case RecursiveRef():
                return RecursiveRef(self.recursions.get(node.name, node.name), self.all(node.names))
            case UnionAll():
                return UnionAll(tuple(inputs))
            case Join() | Apply() | Recursion():
                return self.over_two(node, inputs[0], inputs[1])
            case _:
                return self.over_one(node, inputs[0])

    def over_two(self, node: Join | Apply | Recursion, left: Operator, right: Operator) -> Operator:
        match node:
            case Join():
                return replace(node, left=left, right=right, condition=self.optional(node.condition))
            case Apply():
                output = None if node.output is None else self.name(node.output)
                return Apply(node.kind, left, right, self.optional(node.condition), output)
            case Recursion():
                name = self.recursions.get(node.name, node.name)
                return Recursion(name, self.all(node.names), left, right, node.distinct)

    def over_one(self, node: Operator, below: Operator) -> Operator:
        match node:
            case Filter():
                return Filter(below, self.value(node.condition))
            case Project():
                return Project(below, self.outputs(node.outputs))
            case Generate():
                return Generate(below, self.value(node.generator), self.all(node.names), node.outer)
            case Aggregate():
                return Aggregate(below, self.all(node.keys), self.outputs(node.calls))
            case Window():
                return Window(below, self.all(node.partition), self.outputs(node.calls))
            case TopK():
                order = tuple(replace(term, name=self.name(term.name)) for term in node.order)
                return replace(node, input=below, order=order)
            case _:
                raise TypeError(type(node))

    def name(self, name: str) -> str:
        return self.columns.get(name, name)

    def all(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self.name, names))

    def value(self, expression: Expr) -> Expr:
        return renamed(expression, self.columns)

    def optional(self, expression: Expr | None) -> Expr | None:
        return None if expression is None else self.value(expression)

    def outputs(self, outputs: Sequence[Output]) -> tuple[Output, ...]:
        return tuple(Output(self.name(output.name), self.value(output.value)) for output in outputs)
