"""Queries that read the clock: the time becomes the refresh's own.

In a text the functions are replaced by a moment, so that a query gives the same rows whenever it is run (``at_time``).
In a tree they are replaced by a column that no operator makes, ``NOW`` (``bind_clock``); which moment it stands for is
said when the tree is run, and may differ between the old and the new state of its tables (``with_moments``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

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
    col,
    substituted,
    transformed,
)
from trickle.operators.clock import NOW
from trickle.sql.canonical.parsing import root_of, written
from trickle.sql.facts import reads_clock


def at_time(text: str, moment: datetime, max_depth: int) -> str:
    """The text with the clock's functions replaced by a moment.

    >>> at_time("SELECT current_date() AS d FROM t WHERE at > now()", datetime(2026, 1, 2, tzinfo=UTC), 64)
    "SELECT CAST(CAST('2026-01-02 00:00:00.000000Z' AS TIMESTAMP) AS DATE) AS d FROM t WHERE at > CAST('2026-01-02 \
00:00:00.000000Z' AS TIMESTAMP)"
    """
    return written(_replaced(root_of(text, max_depth), literal(moment)))


def literal(moment: datetime) -> Expr:
    """A moment as Spark SQL has it."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%fZ")
    return exp.cast(exp.Literal.string(text), "timestamp", dialect="spark")


def bind_clock(tree: Operator) -> Operator:
    """The tree with ``NOW`` for the clock, in filters and projections only: there, what time alone changes is known."""
    return transformed(tree, _bound)


def _bound(node: Operator) -> Operator:
    if not any(has_clock(expression) for expression in node.expressions):
        return node
    match node:
        case Filter():
            return replace(node, condition=_now(node.condition))
        case Project():
            return replace(node, outputs=tuple(Output(o.name, _now(o.value)) for o in node.outputs))
        case Join() if node.kind is JoinKind.INNER and node.condition is not None:
            return _above_join(node, node.condition)
        case Aggregate():
            return _below_aggregate(node)
        case _:
            raise UnsupportedQuery(
                "the clock is read in a place where its changes are not followed",
                detail="it is followed in SELECT, WHERE, HAVING, the conditions of inner joins, and aggregates",
                hint="compute the value in a subquery first",
            )


def _above_join(node: Join, condition: Expr) -> Operator:
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    steady = [part for part in parts if not has_clock(part)]
    moving = [_now(part) for part in parts if has_clock(part)]
    joined = replace(node, condition=exp.and_(*steady) if steady else None)
    return Filter(joined, exp.and_(*moving))


def _below_aggregate(node: Aggregate) -> Operator:
    """The arguments of the calls that read the clock, computed below."""
    added: list[Output] = []
    calls = []
    for call in node.calls:
        value = call.value.copy()
        for argument in _arguments(value):
            if has_clock(argument):
                name = f"__trickle_clock_{call.name}_{len(added)}"
                added.append(Output(name, _now(argument)))
                argument.replace(col(name))
        calls.append(Output(call.name, value))
    below = Project(node.input, (*Output.keep(node.input.columns), *added))
    return Aggregate(below, node.keys, tuple(calls))


def _arguments(call: Expr) -> list[Expr]:
    """The arguments of an aggregate function, and the condition of its FILTER."""
    if isinstance(call, exp.Filter):
        condition = call.expression.this if isinstance(call.expression, exp.Where) else call.expression
        return [condition, *_arguments(call.this)]
    arguments = [argument for argument in call.args.get("expressions") or () if isinstance(argument, exp.Expr)]
    return [inner for one in arguments for inner in (one.expressions if isinstance(one, exp.Distinct) else [one])]


def has_clock(expression: Expr) -> bool:
    """Whether an expression reads the clock."""
    return any(reads_clock(node) for node in expression.walk())


def _now(expression: Expr) -> Expr:
    return _replaced(expression.copy(), col(NOW))


def _replaced(expression: Expr, now: Expr) -> Expr:
    def replace_clock(node: Expr) -> Expr:
        return _in_place_of(node)(now) if reads_clock(node) else node

    return expression.transform(replace_clock, copy=False)


def _in_place_of(node: Expr) -> Callable[[Expr], Expr]:
    name = (node.name if isinstance(node, exp.Anonymous | exp.Column) else node.key).lower().replace("_", "")
    match name:
        case "currenttimestamp" | "now":
            return lambda now: now.copy()
        case "currentdate" | "curdate":
            return lambda now: exp.cast(now.copy(), "date", dialect="spark")
        case "localtimestamp":
            return lambda now: exp.cast(now.copy(), "timestamp_ntz", dialect="spark")
        case "unixtimestamp":
            return lambda now: exp.Anonymous(this="unix_timestamp", expressions=[now.copy()])
        case _:
            raise UnsupportedQuery(
                f"{node.sql('spark')} cannot be bound to the time of a refresh", hint="use current_timestamp()"
            )


def with_moments(tree: Operator, moments: Mapping[str, datetime]) -> Operator:
    """The tree with moments for the columns that stand for them."""
    if not moments:
        return tree
    values = {name: literal(moment) for name, moment in moments.items()}

    def set_clock(node: Operator) -> Operator:
        if not node.used & values.keys():
            return node
        match node:
            case Filter():
                return replace(node, condition=substituted(node.condition, values))
            case Project():
                return replace(node, outputs=tuple(Output(o.name, substituted(o.value, values)) for o in node.outputs))
            case _:
                return node

    return transformed(tree, set_clock)
