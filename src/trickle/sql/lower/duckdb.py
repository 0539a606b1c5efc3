"""What sqlglot's translation from Spark to DuckDB gets wrong, put right.

Known to mean the same in both, by comparison on rows (``tests/sql/lower/test_meaning.py``):

    arithmetic      + - * / (as double) % div pmod abs round floor ceil sign; a division by zero is NULL here and an
                    error in Spark, an overflow is an error in both
    comparison      = <> < <= > >= <=> IS [NOT] DISTINCT FROM, IN, BETWEEN, LIKE, RLIKE, AND OR NOT, NaN above all
    choice          CASE, IF, COALESCE, NVL, NVL2, NULLIF, GREATEST, LEAST, ISNULL, ISNOTNULL
    text            CONCAT, ||, CONCAT_WS, SUBSTRING (length 0 or more), LEFT, RIGHT, UPPER, LOWER, TRIM, LENGTH,
                    REPLACE, INSTR, LPAD, REPEAT, REVERSE
    casts           to integer types (towards zero), DOUBLE, DECIMAL, STRING (not of doubles), BOOLEAN, DATE
    dates           date_add, date_sub, datediff, year, month, day, date_trunc
    aggregates      COUNT (also of several columns, DISTINCT, FILTER), COUNT_IF, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR,
                    EVERY, ANY, SOME, VAR_*, STDDEV*, COVAR_*, COLLECT_LIST, COLLECT_SET, LISTAGG, MIN_BY, MAX_BY,
                    FIRST, LAST, ANY_VALUE, PERCENTILE, MEDIAN, BIT_*
    arrays          ARRAY, SIZE, SORT_ARRAY, ARRAY_SORT, ARRAY_CONTAINS, ARRAY_DISTINCT, ARRAY_JOIN, ARRAY_REPEAT,
                    SEQUENCE (of integers), ELEMENT_AT, TRANSFORM, FILTER, EXISTS (NULL counts as false)
    windows         all ranking functions, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, aggregates, every frame

Types may be wider: the sum of integers is a HUGEINT, a quotient of decimals a double. A group tells 0.0 from -0.0,
which Spark does not.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Expr
from trickle.sql.lower.rewriting import rewritten, spelled

_INTEGERS = frozenset((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT))
_OF_AN_AGGREGATE = (exp.Filter, exp.Window, exp.IgnoreNulls)


def adapt_to_duckdb(holder: Expr) -> None:
    """Change a tree that was read as Spark SQL in place."""
    rewritten(holder, _adapted)
    for call in list(holder.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg)):
        _never_null(call)


def _adapted(node: Expr) -> Expr:  # noqa: C901, PLR0912 - one case for each function
    match node:
        case exp.Anonymous():
            return _function(node)
        case exp.AnyValue() if not isinstance(node.parent, exp.IgnoreNulls):
            return exp.First(this=node.this)
        case exp.IgnoreNulls(this=exp.Last() as last):
            return exp.Filter(this=exp.Last(this=last.this), expression=exp.Where(this=_is_there(last.this)))
        case exp.ArgMax() | exp.ArgMin():
            # Only a NULL among what is compared is passed over.
            name = "ARG_MAX_NULL" if isinstance(node, exp.ArgMax) else "ARG_MIN_NULL"
            return exp.Anonymous(this=name, expressions=[node.this, node.expression])
        case exp.Quantile():
            return exp.Anonymous(this="QUANTILE_CONT", expressions=[node.this, node.args["quantile"]])
        case exp.Count() if node.expressions:
            return _count_of_several([node.this, *node.expressions])
        case exp.GroupConcat() if node.args.get("separator") is None:
            node.set("separator", exp.Literal.string(""))
        case exp.ArraySort() if isinstance(asc := node.args.get("asc"), exp.Boolean) and not asc.this:
            return exp.Anonymous(this="LIST_SORT", expressions=[node.this, *_strings("DESC", "NULLS LAST")])
        case exp.ArrayContains():
            return _contains(node.this, node.expression)
        case exp.Exists(expression=exp.Lambda() as test):
            found = exp.ArrayFilter(this=node.this, expression=test)
            return exp.paren(exp.GT(this=_call("LEN", found), expression=exp.Literal.number(0)), copy=False)
        case exp.GenerateSeries() if node.args.get("step") is None and "start" in node.args:
            return _sequence(node.args["start"], node.args["end"])
        case exp.Substring(args={"start": start}):
            node.set("start", _from_one(start))
        case exp.TsOrDsAdd() if node.text("unit").upper() == "DAY":
            days = exp.Add(this=exp.cast(node.this, exp.DType.DATE), expression=exp.paren(node.expression))
            return exp.paren(days, copy=False)
        case exp.Cast(to=exp.DataType(this=kind)) if kind in _INTEGERS and not _is_integer(node.this):
            # DuckDB rounds, Spark cuts.
            node.set("this", _call("TRUNC", exp.cast(node.this, exp.DType.DOUBLE)))
        case exp.Like() if not isinstance(node.parent, exp.Escape) and _may_escape(node.expression):
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        case _:
            pass
    return node


def _function(node: exp.Anonymous) -> Expr:
    arguments = node.expressions
    match node.name.lower(), len(arguments):
        case "array_repeat", 2:
            times = exp.cast(arguments[1], exp.DType.BIGINT)
            return _call("REPEAT", exp.Array(expressions=[arguments[0]]), times)
        case _:
            return spelled(node)


def _never_null(call: Expr) -> None:
    """Over no rows Spark's lists are empty and DuckDB's are NULL."""
    whole = call
    while isinstance(whole.parent, _OF_AN_AGGREGATE) and whole.arg_key == "this":
        whole = whole.parent
    whole.replace(exp.Coalesce(this=whole.copy(), expressions=[exp.Array()]))


def _count_of_several(values: list[Expr]) -> Expr:
    missing = exp.or_(*(exp.Is(this=value, expression=exp.null()) for value in values))
    counted = exp.Case(ifs=[exp.If(this=missing, true=exp.null())], default=exp.Literal.number(1))
    return exp.Count(this=counted)


def _contains(array: Expr, value: Expr) -> Expr:
    """NULL when the value is NULL, or is not found among values some of which are NULL."""
    found = _call("LIST_CONTAINS", array, value)
    has_null = exp.LT(this=_call("LIST_COUNT", array), expression=_call("LEN", array))
    nothing = exp.Is(this=value.copy(), expression=exp.null())
    return exp.Case(
        ifs=[
            exp.If(this=nothing, true=exp.null()),
            exp.If(this=found, true=exp.true()),
            exp.If(this=has_null, true=exp.null()),
        ],
        default=found.copy(),
    )


def _sequence(start: Expr, end: Expr) -> Expr:
    """Spark counts down when it has to."""
    bounds = [exp.cast(start, exp.DType.BIGINT), exp.cast(end, exp.DType.BIGINT)]
    up = exp.LTE(this=bounds[0].copy(), expression=bounds[1].copy())
    down = exp.Neg(this=exp.Literal.number(1))
    return exp.Case(
        ifs=[exp.If(this=up, true=_call("GENERATE_SERIES", *bounds))],
        default=_call("GENERATE_SERIES", *bounds, down),
    )


def _from_one(start: Expr) -> Expr:
    """Place 0 is place 1 in Spark."""
    if isinstance(start, exp.Literal | exp.Neg):
        return exp.Literal.number(1) if start.name == "0" else start
    is_zero = exp.EQ(this=exp.paren(start), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_zero, true=exp.Literal.number(1))], default=start.copy())


def _may_escape(pattern: Expr) -> bool:
    return not (isinstance(pattern, exp.Literal) and "\\" not in pattern.name)


def _is_there(value: Expr) -> Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))


def _is_integer(value: Expr) -> bool:
    value = value.this if isinstance(value, exp.Neg) else value
    return isinstance(value, exp.Null | exp.Count) or (isinstance(value, exp.Literal) and value.is_int)


def _strings(*values: str) -> list[exp.Literal]:
    return [exp.Literal.string(value) for value in values]


def _call(name: str, *arguments: Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
