"""Types that stay what they are when parts of a query are left out.

A plan leaves out what is empty: what did not change, and what asks for NULL where there is none. What is left must not
have other types for it, as they decide how values are compared, divided and written as text:

    union of INT and DECIMAL(10,2)      without its second part an INT: CAST(v AS STRING) is 1, and not 1.00
    left join with nothing              NULL, which has no type of its own: explode(NULL) is refused
    aggregate without keys of nothing   the same

So the parts of a union are cast to the types of the union (``aligned``, in the query's tree), and NULLs that take the
place of columns get the types of these (``typed_nulls``, in whatever is run). A name is made once in a tree, or by all
parts of a union, so types are known by names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    UnionAll,
    Values,
    col,
    transformed,
    walk,
)

Types = Mapping[str, str]
"""The types of columns, by their names in a tree, as the database that runs it spells them."""
ColumnsOf = Callable[[Operator], Sequence[tuple[str, str]]]
"""The columns of a tree with their types; none where they cannot be told."""


def aligned(tree: Operator, columns_of: ColumnsOf) -> Operator:
    """The tree with the parts of its unions cast to the types of the unions."""

    def cast_parts(node: Operator) -> Operator:
        if not isinstance(node, UnionAll):
            return node
        known = [dict(columns_of(part)) for part in node.parts]
        if all(len(types) == len(node.columns) and types == known[0] for types in known):
            return node
        wanted = columns_of(node)
        if not wanted:
            return node
        return UnionAll(tuple(_cast(part, types, wanted) for part, types in zip(node.parts, known, strict=True)))

    return transformed(tree, cast_parts)


def _cast(part: Operator, known: Types, wanted: Sequence[tuple[str, str]]) -> Operator:
    if all(known.get(name) == kind for name, kind in wanted):
        return part
    outputs = (
        Output(name, col(name) if known.get(name) == kind else cast_to(col(name), kind)) for name, kind in wanted
    )
    return Project(part, tuple(outputs))


def types_of_gaps(tree: Operator, columns_of: ColumnsOf) -> dict[str, str]:
    """The types of the columns that NULL may take the place of."""
    found: dict[str, str] = {}
    for node in walk(tree):
        match node:
            case Join(kind=JoinKind.LEFT):
                found |= columns_of(node.right)
            case Aggregate(keys=()):
                found |= columns_of(node.input)
            case _:
                pass
    return found


def typed_nulls(tree: Operator, types: Types) -> Operator:
    """The tree with types for its NULLs, where they are known."""

    def with_types(node: Operator) -> Operator:
        match node:
            case Project() if any(isinstance(output.value, exp.Null) for output in node.outputs):
                return replace(node, outputs=tuple(_typed(output, types) for output in node.outputs))
            case Values() if not node.rows:
                # One row of NULLs that nothing passes.
                one = Values(("__trickle_one",), ((exp.Literal.number(1),),))
                nulls = tuple(_typed(Output(name, exp.null()), types) for name in node.names)
                return Project(Filter(one, exp.false()), nulls)
            case _:
                return node

    return transformed(tree, with_types) if types else tree


def null_of(kind: str) -> Expr:
    """NULL of a type."""
    return cast_to(exp.null(), kind)


def cast_to(value: Expr, kind: str) -> Expr:
    """A value as a type, which is spelled as the database does."""
    return exp.Cast(this=value.copy(), to=exp.DataType(this=exp.DType.USERDEFINED, kind=kind))


def _typed(output: Output, types: Types) -> Output:
    kind = types.get(output.name) if isinstance(output.value, exp.Null) else None
    return output if kind is None else Output(output.name, null_of(kind))
