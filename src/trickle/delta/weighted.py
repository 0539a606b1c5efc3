"""Relations with weights, and pieces that several rules are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.operators import Join, JoinKind, Operator, Output, Project, UnionAll, col, null_safe

KEY = "__trickle_key_"
"""What the columns of a set of keys are called, so that they can be joined with the rows they came from."""


def weighted(tree: Operator, weight: int) -> Operator:
    """Rows that all have the same weight."""
    return Project(tree, (*Output.keep(tree.columns), Output(WEIGHT, literal(weight))))


def literal(number: int) -> exp.Expr:
    """A whole number, with its sign."""
    value = exp.Literal.number(str(abs(number)))
    return exp.Neg(this=value) if number < 0 else value


def arranged(tree: Operator, columns: Sequence[str]) -> Operator:
    """The same relation with these columns and the weight, in this order."""
    wanted = (*columns, WEIGHT)
    return tree if tree.columns == wanted else Project(tree, Output.keep(wanted))


def padded(tree: Operator, missing: Iterable[str], columns: Sequence[str]) -> Operator:
    """Weighted rows with NULL for the columns that they lack."""
    lacking = set(missing)
    values = (Output(name, exp.null() if name in lacking else col(name)) for name in (*columns, WEIGHT))
    return Project(tree, tuple(values))


def union(parts: Iterable[Operator]) -> Operator:
    """All rows of all parts; a union inside is taken apart."""
    flat: list[Operator] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, UnionAll) else (part,))
    return flat[0] if len(flat) == 1 else UnionAll(tuple(flat))


def keys_of(rows: Operator, keys: Sequence[str]) -> Operator:
    """The keys of rows, under names of their own; a key may be there several times, which a semi join does not mind."""
    return Project(rows, tuple(Output(key_name(place), col(key)) for place, key in enumerate(keys)))


def key_name(place: int) -> str:
    """What the key at a place is called in a set of keys."""
    return f"{KEY}{place}"


def restricted(tree: Operator, keys: Sequence[str], wanted: Operator) -> Operator:
    """The rows whose keys are among those wanted (``keys_of``). Without keys: all rows."""
    if not keys:
        return tree
    pairs = [(key, key_name(place)) for place, key in enumerate(keys)]
    return Join(JoinKind.SEMI, tree, wanted, null_safe(pairs), small="right")
