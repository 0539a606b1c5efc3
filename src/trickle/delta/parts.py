"""What is stored for an aggregate function, so that its value can be kept without reading the group again.

A function is kept in *parts*: aggregates that are stored, to which a change row makes a *contribution*.

| functions                     | parts                   | when the group is read again                          |
|-------------------------------|-------------------------|-------------------------------------------------------|
| count, count_if               | the count               | never                                                 |
| sum, avg of exact numbers     | sum, count of non-NULL  | never; PostgreSQL's numeric when it is not finite     |
| sum, avg of floating numbers  | sum, count of non-NULL  | a deletion: what was added cannot be taken out exactly |
| min, max, bool_and, bool_or   | the extremum            | it was deleted, and nothing better came               |
| everything else               | the value               | always                                                |

Sums are never multiplied by weights and never added to each other with ``+``: Spark would change a decimal's type and
drop digits. A stored sum is one more row of the sum over the contributions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.delta.building import both, call, case, cast, deleted, either, inserted, is_not_null, is_null, signed
from trickle.operators import Expr, Output, col

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint", "long", "integer", "short", "byte"))
_NUMERIC = "numeric"
"""PostgreSQL's numeric, of any number of digits: its sums are exact, and so is what they are divided by."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_FLOATS = frozenset(("float", "double", "real"))
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_BEST = {
    "min": "min",
    "max": "max",
    "bool_and": "min",
    "every": "min",
    "bool_or": "max",
    "some": "max",
    "any": "max",
}
_MEANS = frozenset(("avg", "mean"))


@dataclass(frozen=True)
class Part:
    """An aggregate that is stored.

    ``merges`` are aggregates over the stored row and the contributions of a group (both in a column called ``name``;
    the stored row has no weight), ``value`` is made of them, and ``anew`` says when the group has to be read instead.
    """

    name: str
    stored: Expr
    contribution: Expr
    merges: tuple[Output, ...]
    value: Expr
    anew: Expr
    is_floating: bool = False
    """Whether it is a sum of floating numbers, to which rounding errors are added as well."""


@dataclass(frozen=True)
class Kept:
    """A call: its parts, and its value made of them."""

    parts: tuple[Part, ...]
    value: Expr


def keep(aggregate: Output, place: int, argument_type: str) -> Kept:
    """How a call of an aggregate function is kept."""
    value = aggregate.value
    condition: Expr | None = None
    if isinstance(value, exp.Filter):
        condition = value.expression.this if isinstance(value.expression, exp.Where) else value.expression
        value = value.this
    name = value.name.lower() if isinstance(value, exp.Anonymous) else ""
    arguments = [argument for argument in value.args.get("expressions") or () if isinstance(argument, exp.Expr)]
    if arguments and isinstance(arguments[0], exp.Distinct):
        if name not in _BEST or len(arguments) != 1:
            return _anew(aggregate, place)
        arguments = list(arguments[0].expressions)
    match name:
        case "count" | "count_if" if arguments:
            return _count(_counted(name, arguments, condition), place)
        case "sum" | "avg" | "mean" if len(arguments) == 1:
            return _sum(name, _filtered(arguments[0], condition), place, argument_type) or _anew(aggregate, place)
        case _ if name in _BEST and len(arguments) == 1:
            return _best(_BEST[name], _filtered(arguments[0], condition), place)
        case _:
            return _anew(aggregate, place)


def summed_argument(aggregate: Output) -> Expr | None:
    """What a sum or a mean is taken of: how it is kept depends on the type. None for other functions."""
    value = aggregate.value.this if isinstance(aggregate.value, exp.Filter) else aggregate.value
    if not isinstance(value, exp.Anonymous) or value.name.lower() not in ("sum", *_MEANS):
        return None
    arguments = value.expressions
    return arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], exp.Distinct) else None


def group_count() -> Part:
    """The number of rows of a group: without rows there is no group."""
    return _count_part("__trickle_count", exp.true())


def is_exact(argument_type: str) -> bool:
    """Whether sums of this type lose nothing."""
    return argument_type in _INTEGERS or argument_type == _NUMERIC or _DECIMAL.fullmatch(argument_type) is not None


def _filtered(value: Expr, condition: Expr | None) -> Expr:
    return value if condition is None else case((condition, value))


def _counted(name: str, arguments: list[Expr], condition: Expr | None) -> Expr:
    """When a row counts."""
    wanted = [] if condition is None else [condition]
    if name == "count_if":
        wanted += arguments
    elif not isinstance(arguments[0], exp.Star | exp.Literal):
        wanted += [is_not_null(argument) for argument in arguments]
    return both(*(exp.paren(w.copy()) for w in wanted)) if wanted else exp.true()


def _count(counted: Expr, place: int) -> Kept:
    part = group_count() if counted == exp.true() else _count_part(f"__trickle_count_{place}", counted)
    return Kept((part,), col(part.name))


def _count_part(name: str, counted: Expr) -> Part:
    zero, one = exp.Literal.number("0"), exp.Literal.number("1")
    always = counted == exp.true()
    return Part(
        name=name,
        stored=call("count", one if always else case((counted, one))),
        contribution=col(WEIGHT) if always else case((counted, col(WEIGHT)), otherwise=zero),
        merges=(Output(name, call("sum", col(name))),),
        value=call("coalesce", col(name), zero),
        anew=exp.false(),
    )


def _sum(name: str, argument: Expr, place: int, argument_type: str) -> Kept | None:
    is_mean, is_integer = name in _MEANS, argument_type in _INTEGERS
    kept_type = _sum_type(argument_type)
    if kept_type is None or (is_mean and _mean_is_rounded(argument_type)):
        return None
    # Spark takes the mean of integers over a floating sum, which is never too large.
    added = cast(argument, "decimal(20, 0)") if is_mean and is_integer else argument
    if argument_type == _NUMERIC:
        # Integers too: the smallest of their type has no negative.
        added = cast(argument, _NUMERIC)
    counts = _count_part(f"__trickle_count_{place}", is_not_null(argument))
    total, gone = f"__trickle_sum_{place}", f"__trickle_gone_{place}"
    zero, exact = exp.Literal.number("0"), is_exact(argument_type)
    merges = [Output(total, call("sum", col(total)))]
    if not exact:
        merges.append(Output(gone, call("count", case((deleted(), col(total))))))
    summed = cast(col(total), "decimal(30, 0)" if is_mean and is_integer else kept_type)
    sums = Part(
        name=total,
        stored=call("sum", added),
        contribution=signed(added),
        merges=tuple(merges),
        value=case((exp.GT(this=counts.value.copy(), expression=zero), summed)),
        anew=_sum_is_lost(argument_type, total, gone),
        is_floating=not exact,
    )
    if not is_mean:
        return Kept((sums, counts), col(total))
    dividend = cast(col(total), "double") if is_integer else col(total)
    return Kept((sums, counts), exp.Div(this=dividend, expression=call("nullif", col(counts.name), zero)))


def _sum_is_lost(argument_type: str, total: str, gone: str) -> Expr:
    """When a sum does not follow from what it was: something went that cannot be taken out of it again."""
    if argument_type == _NUMERIC:
        return exp.In(this=cast(col(total), "string"), expressions=[exp.Literal.string(word) for word in _NOT_FINITE])
    if is_exact(argument_type):
        return exp.false()
    return exp.GT(this=col(gone), expression=exp.Literal.number("0"))


def _sum_type(argument_type: str) -> str | None:
    """The type that Spark gives to a sum; None for types whose sums are not kept."""
    if found := _DECIMAL.fullmatch(argument_type):
        return f"decimal({min(38, int(found[1]) + 10)}, {found[2]})"
    if argument_type in _INTEGERS:
        return "bigint"
    if argument_type == _NUMERIC:
        return _NUMERIC
    return "double" if argument_type in _FLOATS else None


def _mean_is_rounded(argument_type: str) -> bool:
    """Whether sum / count has fewer decimals than the mean: Spark keeps 38 digits, and the sum takes its share."""
    found = _DECIMAL.fullmatch(argument_type)
    return found is not None and int(found[1]) > 24


def _best(best: str, argument: Expr, place: int) -> Kept:
    name = f"__trickle_{best}_{place}"
    came, went, was = f"__trickle_came_{place}", f"__trickle_went_{place}", f"__trickle_was_{place}"
    better = exp.LT if best == "min" else exp.GT
    part = Part(
        name=name,
        stored=call(best, argument),
        contribution=argument,
        merges=(
            Output(came, call(best, case((inserted(), col(name))))),
            Output(went, call(best, case((deleted(), col(name))))),
            Output(was, call(best, case((is_null(col(WEIGHT)), col(name))))),
        ),
        value=case(
            (is_null(col(was)), col(came)),
            (is_null(col(came)), col(was)),
            (better(this=col(came), expression=col(was)), col(came)),
            otherwise=col(was),
        ),
        # The change may hold a row that came and went at once, which was never there: of values as good as the best
        # that went, none is known to have stayed.
        anew=both(
            is_not_null(col(went)),
            exp.paren(either(is_null(col(was)), exp.Not(this=exp.paren(better(this=col(was), expression=col(went)))))),
            exp.paren(
                either(is_null(col(came)), exp.Not(this=exp.paren(better(this=col(came), expression=col(went)))))
            ),
        ),
    )
    return Kept((part,), col(name))


def _anew(aggregate: Output, place: int) -> Kept:
    part = Part(
        name=f"__trickle_value_{place}",
        stored=aggregate.value,
        contribution=exp.null(),
        merges=(),
        value=exp.null(),
        anew=exp.true(),
    )
    return Kept((part,), col(part.name))


def all_parts(kept: Mapping[str, Kept]) -> tuple[Part, ...]:
    """The parts of several calls, each once."""
    found: dict[str, Part] = {}
    for one in kept.values():
        for part in one.parts:
            found.setdefault(part.name, part)
    return tuple(found.values())
