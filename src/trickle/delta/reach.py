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
    found = given_together(tree, [column])
    return None if found is None else tuple((leaf, stored[0]) for leaf, stored in found)


def given_together(tree: Operator, columns: Sequence[str]) -> tuple[tuple[Scan | Step, list[str]], ...] | None:
    """The same for several columns: row by row, the values that they have in a leaf belong together."""
    wanted = set(columns)
    match tree:
        case Scan() | Step():
            stored = {name: own for own, name in tree.fields}
            at_hand = not isinstance(tree, Scan) or tree.face is Face.CHANGE
            return ((tree, [stored[name] for name in columns]),) if at_hand and wanted <= stored.keys() else None
        case Project():
            values = {output.name: output.value for output in tree.outputs}
            below = [value.name for name in columns if isinstance(value := values[name], exp.Column)]
            return given_together(tree.input, below) if len(below) == len(columns) else None
        case UnionAll():
            parts = [given_together(part, columns) for part in tree.parts]
            return None if None in parts else tuple(leaf for part in parts if part for leaf in part)
        case Join():
            if wanted <= set(tree.left.columns):
                return given_together(tree.left, columns)
            # To the right of a left join NULLs come in.
            inner = tree.kind is JoinKind.INNER and wanted <= set(tree.right.columns)
            return given_together(tree.right, columns) if inner else None
        case Filter() | Generate() | Aggregate() | Window():
            return given_together(tree.input, columns) if wanted <= set(tree.input.columns) else None
        case _:
            return None


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
    # The other side has the same values where the join says so. Of columns that are not a table's the types may differ:
    # what equals a text that equals a number need not equal another such text.
    if not _is_stored(tree.left if from_left else tree.right, column):
        return replace(tree, left=left, right=right)
    for one in equalities(tree):
        if from_left and one.left == column:
            right = narrowed(right, one.right, narrow)
        elif not from_left and one.right == column:
            left = narrowed(left, one.left, narrow)
    return replace(tree, left=left, right=right)


def _is_stored(tree: Operator, column: str) -> bool:
    """Whether a column is one of a table's. Equalities of such columns have one type, or say what they convert."""
    match tree:
        case Scan():
            return any(name == column for _, name in tree.fields)
        case Project():
            value = next(output.value for output in tree.outputs if output.name == column)
            return isinstance(value, exp.Column) and _is_stored(tree.input, value.name)
        case UnionAll():
            # Its parts may be of different types.
            return False
        case _:
            return any(_is_stored(child, column) for child in tree.inputs if column in child.columns)
