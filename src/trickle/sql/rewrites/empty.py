"""What aggregate functions give for no rows, and relations of exactly or at most one row."""

from __future__ import annotations

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    TopK,
    Values,
    Window,
    col,
)

_COUNTS = frozenset(("approx_count_distinct", "count", "count_if", "regr_count"))
_LISTS = frozenset(("array_agg", "collect_list", "collect_set"))
# These give an empty sketch, which cannot be written down.
_SKETCHES = ("sketch", "bitmap", "approx_top_k", "theta_")


def function_name(call: Expr) -> str:
    """The name of the aggregate or window function in a call, small.

    >>> from sqlglot import exp, parse_one
    >>> function_name(exp.Filter(this=exp.Anonymous(this="COUNT"), expression=parse_one("WHERE x", into=exp.Where)))
    'count'
    """
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup | exp.Window):
        call = call.this
    return call.name.lower() if isinstance(call, exp.Anonymous) else call.key


def or_empty(call: Output, value: Expr) -> Expr:
    """``value`` of a call, or what the function gives for no rows where ``value`` is NULL because there are none."""
    name = function_name(call.value)
    if name in _COUNTS:
        return exp.Anonymous(this="coalesce", expressions=[value, exp.Literal.number(0)])
    if name in _LISTS:
        return exp.Anonymous(this="coalesce", expressions=[value, exp.Anonymous(this="array", expressions=[])])
    if any(part in name for part in _SKETCHES):
        raise UnsupportedQuery(
            f"{name} is not supported in a correlated subquery", hint="group by the correlated column, and join"
        )
    return value


def groups_or_empty(aggregate: Aggregate, renamed: dict[str, str]) -> tuple[Output, ...]:
    """The columns of an aggregate without keys, from a group that may be missing."""
    return tuple(Output(call.name, or_empty(call, col(renamed[call.name]))) for call in aggregate.calls)


def at_most_one_row(tree: Operator) -> bool:
    """Whether a relation cannot have two rows, whatever the tables hold."""
    match tree:
        case Aggregate():
            return not tree.keys
        case Values():
            return len(tree.rows) <= 1
        case TopK():
            return tree.limit is not None and tree.limit <= 1
        case Filter() | Project() | Window():
            return at_most_one_row(tree.input)
        case Join():
            right = not tree.kind.keeps_right or at_most_one_row(tree.right)
            return at_most_one_row(tree.left) and right
        case _:
            return False


def exactly_one_row(tree: Operator) -> bool:
    """Whether a relation always has one row."""
    match tree:
        case Aggregate():
            return not tree.keys
        case Values():
            return len(tree.rows) == 1
        case Project() | Window():
            return exactly_one_row(tree.input)
        case Join():
            crossed = tree.kind is JoinKind.LEFT or (tree.kind is JoinKind.INNER and tree.condition is None)
            return crossed and exactly_one_row(tree.left) and exactly_one_row(tree.right)
        case _:
            return False
