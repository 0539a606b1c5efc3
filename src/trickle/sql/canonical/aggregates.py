"""Aggregate functions whose result depends on the order of the rows, which SQL does not fix.

    first, first_value, any_value(x)   min(x): a value that some order of the rows gives, with or without IGNORE NULLS;
                                       NULL only when there is nothing else
    last, last_value(x)                max(x)
    collect_list, array_agg,           sort_array(...), unless the array goes where its order does not matter
    collect_set(x)
    listagg, string_agg(x)             WITHIN GROUP (ORDER BY x); an order that is given is followed by x
    mode(x)                            mode(x, true): the smallest of the most frequent
    max_by, min_by(x, y)               of rows with the same y, the greatest (smallest) x

Where values of a type cannot be sorted (maps), the function is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.sql.build.calls import call, function_name
from trickle.sql.canonical.columns import Columns, is_orderable
from trickle.sql.canonical.ties import missing

FIRST = frozenset(("any_value", "first", "first_value"))
LAST = frozenset(("last", "last_value"))
LISTS = frozenset(("array_agg", "collect_list", "collect_set"))
# Functions of an array that do not care for its order.
_ORDERLESS = frozenset(
    ("array_contains", "array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array")
)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def settle_aggregates(root: exp.Expr, columns: Columns) -> Iterator[str]:
    """Give every aggregate function of a tree one result, in place; yields what was done, in words."""
    for node in reversed(list(root.dfs())):
        name = function_name(node)
        if isinstance(node, exp.GroupConcat):
            yield from _listagg(node, columns)
        elif isinstance(node, exp.ArgMax | exp.ArgMin):
            yield from _by(node, columns)
        elif name == "mode":
            yield from _mode(node, columns)
        elif name in FIRST | LAST and windowed(node) is None:
            yield from _extreme(node, columns)
        elif name in LISTS and windowed(node) is None:
            yield from _list(node, columns)


def outermost(node: exp.Expr) -> exp.Expr:
    """The call with its FILTER and IGNORE NULLS."""
    while isinstance(node.parent, _WRAPPERS) and node.arg_key == "this":
        node = node.parent
    return node


def windowed(node: exp.Expr) -> exp.Window | None:
    """The OVER of a call, if it has one."""
    whole = outermost(node)
    return whole.parent if isinstance(whole.parent, exp.Window) and whole.arg_key == "this" else None


def check_orderable(value: exp.Expr, columns: Columns, what: str) -> None:
    """Refuse a value that cannot be sorted."""
    type_ = columns.type_of(value.find_ancestor(exp.Select), value)
    if not is_orderable(type_):
        raise UnsupportedQuery(
            f"{what} of values that cannot be sorted has no fixed result",
            detail=f"{value.sql('spark')[:60]} is {type_}",
            hint="use a value of another type, such as to_json(...) of it",
        )


def in_order(array: exp.Expr) -> bool:
    """Whether the order of an array does not matter where it goes."""
    parent = array.parent
    return function_name(parent) in _ORDERLESS and parent.expressions[0] is array if parent is not None else False


def _extreme(node: exp.Expr, columns: Columns) -> Iterator[str]:
    name = function_name(node)
    value = node.expressions[0]
    check_orderable(value, columns, name)
    plain = value.expressions[0] if isinstance(value, exp.Distinct) else value
    chosen = "min" if name in FIRST else "max"
    wrapper = node.parent
    node.replace(call(chosen, plain.copy()))
    while isinstance(wrapper, exp.IgnoreNulls | exp.RespectNulls):
        wrapper = wrapper.replace(wrapper.this).parent
    yield f"{name}() may take any row: it is {chosen}()"


def _list(node: exp.Expr, columns: Columns) -> Iterator[str]:
    whole = outermost(node)
    if in_order(whole):
        return
    value = node.expressions[0]
    check_orderable(value.expressions[0] if isinstance(value, exp.Distinct) else value, columns, function_name(node))
    whole.replace(call("sort_array", whole.copy()))
    yield f"{function_name(node)}() has no order: it is sorted"


def _listagg(node: exp.GroupConcat, columns: Columns) -> Iterator[str]:
    if node.args.get("separator") is None:
        # What Spark takes; sqlglot would write a comma.
        node.set("separator", exp.Literal.string(""))
    ordered = node.this
    if (over := windowed(node)) is not None and (over.args.get("order") or over.args.get("spec")):
        return
    inner = ordered.this if isinstance(ordered, exp.Order) else ordered
    distinct = isinstance(inner, exp.Distinct)
    value = inner.expressions[0] if distinct else inner
    terms = list(ordered.expressions) if isinstance(ordered, exp.Order) else []
    if terms and (distinct or any(term.this == value for term in terms)):
        return
    check_orderable(value, columns, "listagg")
    terms.append(ascending(value))
    node.set("this", exp.Order(this=inner.copy(), expressions=terms))
    yield "listagg() has ties: ordered by the value as well" if terms[1:] else "listagg() has no order: it is sorted"


def ascending(value: exp.Expr) -> exp.Ordered:
    """A term of an order: upwards, NULL first, as Spark does by itself."""
    return exp.Ordered(this=value.copy(), desc=False, nulls_first=True)


def _mode(node: exp.Expr, columns: Columns) -> Iterator[str]:
    arguments = node.expressions
    if not arguments or (len(arguments) > 1 and arguments[1] == exp.true()):
        return
    check_orderable(arguments[0], columns, "mode")
    node.set("expressions", [arguments[0].copy(), exp.true()])
    yield "mode() has ties: the smallest value is taken"


def _by(node: exp.ArgMax | exp.ArgMin, columns: Columns) -> Iterator[str]:
    value, order = node.this, node.expression
    if value == order or _is_settled(order, value):
        return
    name = "max_by" if isinstance(node, exp.ArgMax) else "min_by"
    check_orderable(value, columns, name)
    node.set("expression", ranked(order, [value], present=order))
    yield f"{name}() has ties: the {'greatest' if name == 'max_by' else 'smallest'} value is taken"


def ranked(order: exp.Expr, more: list[exp.Expr], present: exp.Expr | None) -> exp.Expr:
    """What to compare rows by: values in turn; NULL, which is left out, unless one of them is present."""
    values = (order, *more)
    fields = [part for place, value in enumerate(values) for part in (exp.Literal.string(f"_{place}"), value.copy())]
    key = call("named_struct", *fields)
    if present is None:
        return key
    there = exp.Not(this=exp.Is(this=enclosed(present), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=there, true=key)])


def enclosed(value: exp.Expr) -> exp.Expr:
    """The value, in parentheses where it needs them as an operand."""
    return exp.paren(value.copy()) if isinstance(value, exp.Binary | exp.Unary) else value.copy()


def _is_settled(order: exp.Expr, value: exp.Expr) -> bool:
    """Whether the value is part of what decides: max_by(x, struct(y, x)), perhaps inside of CASE."""
    if isinstance(order, exp.Case) and len(order.args["ifs"]) == 1 and not order.args.get("default"):
        order = order.args["ifs"][0].args["true"]
    return function_name(order) in ("struct", "named_struct") and not missing([value], order.expressions)
