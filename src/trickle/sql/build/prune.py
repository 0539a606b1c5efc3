"""Leave out what is not used: columns of scans, values that nothing reads, projects that change nothing.

``needed`` goes down the tree. What a subquery uses of the rows outside is needed from the left of its apply. Operators
whose rows depend on a column need it even when nobody reads it: DISTINCT all its keys, a recursion all its columns.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Apply,
    ApplyKind,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    free_columns,
    transformed,
)

Needed = frozenset[str]


def pruned(tree: Operator) -> Operator:
    """The same relation with less work. The root stays: it names the columns."""
    tree = _cut(tree, frozenset(tree.columns))
    tree = tree.with_inputs([transformed(child, tidied) for child in tree.inputs])
    if isinstance(tree, Project) and isinstance(tree.input, Project):
        return _fused(tree, tree.input) or tree
    return tree


def _cut(node: Operator, needed: Needed) -> Operator:
    match node:
        case Scan():
            fields = tuple(field for field in node.fields if field[1] in needed)
            return replace(node, fields=fields or node.fields[:1])
        case Values():
            return node
        case Filter() | TopK() | Generate():
            return replace(node, input=_cut(node.input, needed | node.used))
        case Project():
            return _project(node, needed)
        case UnionAll():
            return _union(node, needed)
        case Join():
            return _join(node, needed)
        case Apply():
            return _apply(node, needed)
        case Aggregate():
            return _aggregate(node, needed)
        case Window():
            calls = _wanted(node.calls, needed)
            if not calls:
                return _cut(node.input, needed)
            node = replace(node, calls=calls)
            return replace(node, input=_cut(node.input, needed | node.used))
        case Recursion():
            base, step = (_cut(part, frozenset(part.columns)) for part in node.inputs)
            return replace(node, base=_exactly(base, node.base.columns), step=_exactly(step, node.step.columns))
        case _:
            return node


def _wanted(outputs: tuple[Output, ...], needed: Needed) -> tuple[Output, ...]:
    return tuple(output for output in outputs if output.name in needed)


def _project(node: Project, needed: Needed) -> Operator:
    outputs = _wanted(node.outputs, needed)
    if not outputs:
        plain = [output for output in node.outputs if output.is_plain]
        outputs = tuple(plain[:1]) or node.outputs[:1]
    node = replace(node, outputs=outputs)
    return replace(node, input=_cut(node.input, node.used))


def _exactly(tree: Operator, names: tuple[str, ...]) -> Operator:
    """Cut operators may keep columns in excess, which some operators above cannot have."""
    return tree if tree.columns == names else Project(tree, Output.keep(names))


def _union(node: UnionAll, needed: Needed) -> Operator:
    names = tuple(name for name in node.columns if name in needed) or node.columns[:1]
    return UnionAll(tuple(_exactly(_cut(part, frozenset(names)), names) for part in node.parts))


def _join(node: Join, needed: Needed) -> Operator:
    wanted = needed | node.used
    left, right = (_cut(side, wanted & frozenset(side.columns)) for side in node.inputs)
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return replace(node, left=left, right=right)
    return replace(node, left=left, right=_cut(node.right, node.used & frozenset(node.right.columns)))


def _apply(node: Apply, needed: Needed) -> Operator:
    if node.output is not None and node.output not in needed:
        return _cut(node.left, needed)
    inner = node.used if node.kind is not ApplyKind.SCALAR else frozenset(node.right.columns)
    if node.kind in (ApplyKind.INNER, ApplyKind.LEFT):
        inner |= needed
    right = _cut(node.right, inner & frozenset(node.right.columns))
    if node.kind is ApplyKind.SCALAR:
        right = _exactly(right, node.right.columns)
    left = _cut(node.left, (needed | node.used | free_columns(right)) & frozenset(node.left.columns))
    return replace(node, left=left, right=right)


def _aggregate(node: Aggregate, needed: Needed) -> Operator:
    calls = _wanted(node.calls, needed)
    if not node.keys and not calls:
        calls = node.calls[:1]
    node = replace(node, calls=calls)
    return replace(node, input=_cut(node.input, node.used))


def tidied(node: Operator) -> Operator:
    """Leave out a project that passes everything on, and make one of two in a row."""
    if not isinstance(node, Project):
        return node
    if isinstance(node.input, Project) and (fused := _fused(node, node.input)):
        node = fused
    unchanged = all(output.is_plain and output.name == output.value.name for output in node.outputs)
    return node.input if unchanged and node.columns == node.input.columns else node


def _fused(outer: Project, inner: Project) -> Project | None:
    """Only when the outer one passes columns on, and nothing would be computed twice."""
    if not all(output.is_plain for output in outer.outputs):
        return None
    by_name = {output.name: output.value for output in inner.outputs}
    values = [by_name.get(output.value.name, output.value) for output in outer.outputs]
    computed = [id(value) for value in values if not isinstance(value, exp.Column)]
    if len(set(computed)) < len(computed):
        return None
    outputs = zip(outer.outputs, values, strict=True)
    return Project(inner.input, tuple(Output(output.name, value) for output, value in outputs))
