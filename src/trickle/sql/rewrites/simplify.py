"""Merges what follows on itself: filters, projections, unions; and drops what does nothing.

    filter a (filter b R)        = filter b AND a R
    project p (project q R)      = project p with q's values R
    project all columns of R     = R
    union all (union all A B) C  = union all A B C
    top-k without bounds R       = R

Two projections stay apart when merging would compute a value twice, when a value may differ from one time to the next
(``rand()``), and when it would come under a lambda whose parameter has the name of one of its columns.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from trickle.operators import (
    Expr,
    Filter,
    Operator,
    Output,
    Project,
    TopK,
    UnionAll,
    column_names,
    substituted,
    transformed,
)
from trickle.sql.rewrites.conditions import all_of, conjuncts, is_volatile


def simplify(tree: Operator) -> Operator:
    """The same relation in fewer operators."""
    return transformed(tree, _simpler)


def _simpler(node: Operator) -> Operator:
    match node:
        case Filter():
            return _filter(node)
        case Project(input=Project() as below) if _may_merge(node, below):
            values = {output.name: output.value for output in below.outputs}
            outputs = tuple(Output(each.name, substituted(each.value, values)) for each in node.outputs)
            return _simpler(Project(below.input, outputs))
        case Project() if node.outputs == Output.keep(node.input.columns):
            return node.input
        case UnionAll():
            parts = [each for part in node.parts for each in _parts(part)]
            return parts[0] if len(parts) == 1 else UnionAll(tuple(parts))
        case TopK(limit=None, offset=0):
            return node.input
        case _:
            return node


def _parts(part: Operator) -> tuple[Operator, ...]:
    match part:
        case UnionAll():
            return part.parts
        case Project(input=UnionAll() as union):
            return tuple(_simpler(Project(each, part.outputs)) for each in union.parts)
        case _:
            return (part,)


def _filter(node: Filter) -> Operator:
    parts = conjuncts(node.condition)
    below = node.input
    if isinstance(below, Filter):
        parts = [*conjuncts(below.condition), *parts]
        below = below.input
    condition = all_of(parts)
    return below if condition is None else Filter(below, condition)


def _may_merge(above: Project, below: Project) -> bool:
    uses = Counter(column.name for output in above.outputs for column in output.value.find_all(exp.Column))
    values = {output.name: output.value for output in below.outputs}
    if any(is_volatile(value) for value in values.values()):
        return False
    if any(uses[name] > 1 and not is_trivial(value) for name, value in values.items()):
        return False
    return all(may_substitute(output.value, values) for output in above.outputs)


def is_trivial(value: Expr) -> bool:
    """Whether a value costs nothing to compute again."""
    return isinstance(value, exp.Column | exp.Literal | exp.Null | exp.Boolean)


def may_substitute(expression: Expr, values: dict[str, Expr]) -> bool:
    """Whether columns can be replaced by values where they stand, in SQL text too."""
    for column in expression.find_all(exp.Column):
        value = values.get(column.name)
        if value is None or isinstance(value, exp.Column):
            names = {value.name.lower()} if value is not None else set()
        elif isinstance(column.parent, exp.Dot | exp.Bracket) and column.arg_key == "this":
            return False
        else:
            names = {name.lower() for name in column_names(value)}
        if names & _parameters(column):
            return False
    return True


def _parameters(column: Expr) -> set[str]:
    """The parameters of the lambdas around a column."""
    found: set[str] = set()
    node = column.parent
    while node is not None:
        if isinstance(node, exp.Lambda):
            found |= {parameter.name.lower() for parameter in node.expressions}
        node = node.parent
    return found
