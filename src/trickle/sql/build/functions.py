"""Table functions in FROM: generators over one row, and range() over constants."""

from __future__ import annotations

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr, Filter, Generate, Operator
from trickle.sql.build.calls import call, function_name
from trickle.sql.build.context import Context
from trickle.sql.build.generators import generator, is_generator
from trickle.sql.build.resolve import Resolver
from trickle.sql.build.scope import Relation, Scope, Visible


def table_function(context: Context, node: Expr, start: Operator, scope: Scope) -> Relation:
    """The rows that a function makes of nothing; ``start`` is a single row."""
    function = Resolver(context, scope).resolve(node)
    if function_name(function) == "range":
        return _range(context, function, start)
    if not is_generator(function):
        name = function_name(function) or function.key
        raise UnsupportedQuery(f"the table function {name} is not supported", hint="explode() and range() are")
    made = generator(context, function, (), scope)
    return Relation.of(made.over(start), made.columns, function_name(function))


def _range(context: Context, function: Expr, start: Operator) -> Relation:
    """``range(low, high, step)`` leaves out ``high``; sequence() does not, and goes down when ``high`` is below."""
    numbers = [_number(each) for each in function.expressions[:3]]
    low, high, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    column = Visible("id", context.fresh("id"), "bigint")
    found = range(low, high, step)
    ends = (found[0], found[-1]) if found else (low, low)
    bounds = (exp.cast(exp.Literal.number(each), "bigint") for each in (*ends, step))
    tree: Operator = Generate(start, call("explode", call("sequence", *bounds)), (column.column,))
    return Relation.of(tree if found else Filter(tree, exp.false()), [column], "range")


def _number(value: Expr) -> int:
    sign, value = (-1, value.this) if isinstance(value, exp.Neg) else (1, value)
    if not value.is_int:
        raise UnsupportedQuery("range() takes whole numbers", detail=f"found {value.sql('spark')[:60]}")
    return sign * int(value.to_py())
