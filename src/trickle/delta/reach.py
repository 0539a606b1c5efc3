"""Where the values of a column come from, and which tables a set of values reaches (pure).

In a join on ``a = b`` only rows of one side matter whose ``b`` is among the values of ``a``. When those are known
before the join is run, the tables under the other side need not be read whole:

    change of orders  join  lineitem on o_orderkey = l_orderkey      reads of lineitem what has those order keys

``given_by`` finds the leaves that bound the values of a column from above, ``narrowed`` the tables that may be
restricted by them. Both give up rather than guess: a bound that is missed costs time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Expr,
    Face,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Project,
    Scan,
    Step,
    UnionAll,
    Window,
)

Narrow = Callable[[Scan, str], Operator]
"""What to read in place of a table, restricted by one of its columns (as the table calls it)."""


@dataclass(frozen=True)
class Equality:
    """Two columns that a join's condition says are equal, and whether NULL equals NULL."""

    left: str
    right: str
    null_safe: bool


def equalities(join: Join) -> Iterator[Equality]:
    """The equalities between columns of both sides that must hold for every pair of rows."""
    left, right = set(join.left.columns), set(join.right.columns)
    for one in conjuncts(join.condition) if join.condition is not None else ():
        if not isinstance(one, exp.EQ | exp.NullSafeEQ):
            continue
        first, second = one.this, one.expression
        if not (isinstance(first, exp.Column) and isinstance(second, exp.Column)):
            continue
        null_safe = isinstance(one, exp.NullSafeEQ)
        if first.name in left and second.name in right:
            yield Equality(first.name, second.name, null_safe)
        elif first.name in right and second.name in left:
            yield Equality(second.name, first.name, null_safe)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that ``AND`` ties together."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    return [condition]


def given_by(tree: Operator, column: str) -> tuple[tuple[Scan | Step, str], ...] | None:
    """Changes and steps, with a column each, that have all values of a column; None when a table is among them."""
    match tree:
        case Scan() | Step():
            if isinstance(tree, Scan) and tree.face is not Face.CHANGE:
                return None
            stored = {name: own for own, name in tree.fields}.get(column)
            return None if stored is None else ((tree, stored),)
        case Project():
            value = next(output.value for output in tree.outputs if output.name == column)
            return given_by(tree.input, value.name) if isinstance(value, exp.Column) else None
        case UnionAll():
            found = [given_by(part, column) for part in tree.parts]
            return None if None in found else tuple(leaf for part in found if part for leaf in part)
        case Join():
            if column in tree.left.columns:
                return given_by(tree.left, column)
            # To the right of a left join NULLs come in.
            return given_by(tree.right, column) if tree.kind is JoinKind.INNER else None
        case Filter() | Generate() | Aggregate() | Window():
            return given_by(tree.input, column) if column in tree.input.columns else None
        case _:
            return None


def given_together(tree: Operator, columns: Sequence[str]) -> tuple[tuple[Scan | Step, list[str]], ...] | None:
    """The same for several columns, where the same leaves have them: row by row their values belong together."""
    found = [leaves for column in columns if (leaves := given_by(tree, column)) is not None]
    if len(found) < len(columns) or len({tuple(leaf for leaf, _ in leaves) for leaves in found}) != 1:
        return None
    return tuple((each[0][0], [stored for _, stored in each]) for each in zip(*found, strict=True))


def narrowed(tree: Operator, column: str, narrow: Narrow) -> Operator:
    """The tree with the tables that a column comes from restricted.

    Rows of the tree are lost only where the restriction leaves out the value that they have in the column.
    """
    match tree:
        case Scan():
            stored = {name: own for own, name in tree.fields}.get(column)
            return narrow(tree, stored) if stored is not None and tree.face is not Face.CHANGE else tree
        case Project():
            value = next(output.value for output in tree.outputs if output.name == column)
            below = narrowed(tree.input, value.name, narrow) if isinstance(value, exp.Column) else tree.input
            return replace(tree, input=below)
        case UnionAll():
            return UnionAll(tuple(narrowed(part, column, narrow) for part in tree.parts))
        case Join():
            return _join(tree, column, narrow)
        case Filter():
            return replace(tree, input=narrowed(tree.input, column, narrow))
        case Generate() if column in tree.input.columns:
            return replace(tree, input=narrowed(tree.input, column, narrow))
        case Aggregate() if column in tree.keys:
            return replace(tree, input=narrowed(tree.input, column, narrow))
        case Window() if column in tree.partition:
            return replace(tree, input=narrowed(tree.input, column, narrow))
        case _:
            return tree


def _join(tree: Join, column: str, narrow: Narrow) -> Operator:
    if tree.kind is not JoinKind.INNER:
        return replace(tree, left=narrowed(tree.left, column, narrow)) if column in tree.left.columns else tree
    from_left = column in tree.left.columns
    left = narrowed(tree.left, column, narrow) if from_left else tree.left
    right = tree.right if from_left else narrowed(tree.right, column, narrow)
    # The other side has the same values where the join says so.
    for one in equalities(tree):
        if from_left and one.left == column:
            right = narrowed(right, one.right, narrow)
        elif not from_left and one.right == column:
            left = narrowed(left, one.left, narrow)
    return replace(tree, left=left, right=right)
