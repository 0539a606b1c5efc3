"""What sqlglot's translation from Spark to DuckDB gets wrong, put right.

Known to mean the same in both, by comparison on rows (``tests/sql/lower/test_meaning.py``):

    arithmetic      + - * / (as double) % div pmod abs round floor ceil sign; a division by zero is NULL here and an
                    error in Spark, an overflow is an error in both
    comparison      = <> < <= > >= <=> IS [NOT] DISTINCT FROM, IN, BETWEEN, LIKE, RLIKE, AND OR NOT, NaN above all
    choice          CASE, IF, COALESCE, NVL, NVL2, NULLIF, GREATEST, LEAST, ISNULL, ISNOTNULL
    text            CONCAT, ||, CONCAT_WS, SUBSTRING (length 0 or more), LEFT, RIGHT, UPPER, LOWER, TRIM, LENGTH,
                    REPLACE, INSTR, LPAD, REPEAT, REVERSE
    casts           to integer types (towards zero), DOUBLE, DECIMAL, STRING (not of doubles), BOOLEAN, DATE
    dates           date_add, date_sub, datediff, year, month, day, dayofweek
    aggregates      COUNT (also of several columns, DISTINCT, FILTER), COUNT_IF, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR,
                    EVERY, ANY, SOME, VAR_*, STDDEV*, COVAR_*, COLLECT_LIST, COLLECT_SET, LISTAGG, MIN_BY, MAX_BY,
                    FIRST, LAST, ANY_VALUE, PERCENTILE, MEDIAN, BIT_*, CORR, REGR_*, KURTOSIS
    arrays          ARRAY, SIZE, SORT_ARRAY, ARRAY_SORT, ARRAY_CONTAINS, ARRAY_DISTINCT, ARRAY_JOIN, ARRAY_REPEAT,
                    ARRAY_POSITION, ARRAY_MIN, ARRAY_MAX, SEQUENCE (of integers), ELEMENT_AT, TRANSFORM, FILTER,
                    EXISTS, FORALL, AGGREGATE, SLICE; not SIZE of a map
    windows         all ranking functions, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, aggregates, every frame

Types may be wider: the sum of integers is a HUGEINT, a quotient of decimals a double. Known to differ: a group tells
0.0 from -0.0; inside structs and arrays NULL is above all in DuckDB and below all in Spark. Dates with an
interval become timestamps. Not made equal: SKEWNESS, MODE, approximate functions, hashes, doubles as text.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from trickle.operators import Expr
from trickle.sql.lower.rewriting import rewritten, spelled

_INTEGERS = frozenset((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT))
_OF_AN_AGGREGATE = (exp.Filter, exp.Window, exp.IgnoreNulls)
_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_QUOTIENTS = (exp.Corr, exp.RegrSlope, exp.RegrIntercept)


def adapt_to_duckdb(holder: Expr) -> None:
    """Change a tree that was read as Spark SQL in place."""
    for change in (_aggregate, _array, _scalar):
        rewritten(holder, change)
    for call in list(holder.find_all(*_LISTS)):
        _around(call, _or_empty)
    for call in list(holder.find_all(*_QUOTIENTS)):
        _around(call, _unless_nan)


def _or_empty(lists: Expr) -> Expr:
    """Over no rows Spark's lists are empty."""
    return exp.Coalesce(this=lists, expressions=[exp.Array()])


def _unless_nan(quotient: Expr) -> Expr:
    """A quotient by zero is NULL in Spark."""
    return exp.Nullif(this=quotient, expression=exp.cast(exp.Literal.string("NaN"), exp.DType.DOUBLE))


def _around(call: Expr, wrap: Callable[[Expr], Expr]) -> None:
    """Put something around an aggregate function and what belongs to it."""
    whole = call
    while isinstance(whole.parent, _OF_AN_AGGREGATE) and whole.arg_key == "this":
        whole = whole.parent
    whole.replace(wrap(whole.copy()))


def _aggregate(node: Expr) -> Expr:
    match node:
        case exp.AnyValue() if not isinstance(node.parent, exp.IgnoreNulls):
            return exp.First(this=node.this)
        case exp.IgnoreNulls(this=exp.Last() as last):
            return exp.Filter(this=exp.Last(this=last.this), expression=exp.Where(this=_is_there(last.this)))
        case exp.ArgMax():
            # Only a NULL among what is compared is passed over.
            return _call("ARG_MAX_NULL", node.this, node.expression)
        case exp.ArgMin():
            return _call("ARG_MIN_NULL", node.this, node.expression)
        case exp.Quantile():
            return _call("QUANTILE_CONT", node.this, node.args["quantile"])
        case exp.Kurtosis():
            return _call("KURTOSIS_POP", node.this)
        case exp.Count() if node.expressions:
            return _count_of_several([node.this, *node.expressions])
        case exp.GroupConcat() if node.args.get("separator") is None:
            node.set("separator", exp.Literal.string(""))
    return node


def _array(node: Expr) -> Expr:
    match node:
        case exp.Anonymous(expressions=[value, times]) if node.name.lower() == "array_repeat":
            return _call("REPEAT", exp.Array(expressions=[value.copy()]), exp.cast(times, exp.DType.BIGINT))
        case exp.Anonymous(expressions=[array, exp.Lambda() as test]) if node.name.lower() == "forall":
            return _holds(array, test, everywhere=True)
        case exp.Exists(expression=exp.Lambda() as test):
            return _holds(node.this, test, everywhere=False)
        case exp.ArraySort() if isinstance(asc := node.args.get("asc"), exp.Boolean) and not asc.this:
            return _call("LIST_SORT", node.this, *_strings("DESC", "NULLS LAST"))
        case exp.ArrayContains():
            return _contains(node.this, node.expression)
        case exp.ArrayDistinct():
            return _distinct(node.this)
        case exp.ArrayPosition():
            known = exp.and_(_is_there(node.this), _is_there(node.expression))
            absent = exp.Case(ifs=[exp.If(this=known, true=exp.Literal.number(0))])
            return exp.Coalesce(this=_call("LIST_POSITION", node.this, node.expression), expressions=[absent])
        case exp.ArrayToString() if node.args.get("null") is None:
            text = exp.Coalesce(this=node.copy(), expressions=[exp.Literal.string("")])
            return exp.Case(ifs=[exp.If(this=_is_there(node.this), true=text)])
        case exp.GenerateSeries(args={"start": start, "end": end}) if node.args.get("step") is None:
            return _sequence(start, end)
    return node


def _scalar(node: Expr) -> Expr:
    match node:
        case exp.Substring(args={"start": start}):
            node.set("start", _from_one(start))
        case exp.TsOrDsAdd() if node.text("unit").upper() == "DAY":
            days = exp.Add(this=exp.cast(node.this, exp.DType.DATE), expression=exp.paren(node.expression))
            return exp.paren(days, copy=False)
        case exp.DayOfWeek():
            return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)), copy=False)
        case exp.Cast(to=exp.DataType(this=kind)) if kind in _INTEGERS and not _is_integer(node.this):
            # DuckDB rounds, Spark cuts.
            node.set("this", _call("TRUNC", exp.cast(node.this, exp.DType.DOUBLE)))
        case exp.Like() if not isinstance(node.parent, exp.Escape) and _may_escape(node.expression):
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        case exp.IsNan():
            return exp.Coalesce(this=node.copy(), expressions=[exp.false()])
        case exp.Nanvl():
            nan = exp.If(this=_call("ISNAN", node.this), true=node.expression)
            return exp.Case(ifs=[nan], default=node.this)
        case _:
            return spelled(node)
    return node


def _count_of_several(values: list[Expr]) -> Expr:
    missing = exp.or_(*(exp.Is(this=value, expression=exp.null()) for value in values))
    counted = exp.Case(ifs=[exp.If(this=missing, true=exp.null())], default=exp.Literal.number(1))
    return exp.Count(this=counted)


def _holds(array: Expr, test: exp.Lambda, *, everywhere: bool) -> Expr:
    """EXISTS and FORALL in three-valued logic: NULL when only values that are NULL could have decided."""
    tried = _call("LIST_TRANSFORM", array, test)
    decided = _call("LIST_CONTAINS", tried, exp.false() if everywhere else exp.true())
    unknown = exp.LT(this=_call("LIST_COUNT", tried), expression=_call("LEN", tried))
    return exp.Case(
        ifs=[
            exp.If(this=exp.Is(this=array.copy(), expression=exp.null()), true=exp.null()),
            exp.If(this=decided, true=exp.false() if everywhere else exp.true()),
            exp.If(this=unknown, true=exp.null()),
        ],
        default=exp.true() if everywhere else exp.false(),
    )


def _distinct(array: Expr) -> Expr:
    """The first of equal values stays where it is, NULL too."""
    value, place = exp.to_identifier("value"), exp.to_identifier("place")
    first = exp.EQ(this=_call("LIST_POSITION", array, value), expression=place.copy())
    return _call("LIST_FILTER", array, exp.Lambda(this=first, expressions=[value.copy(), place.copy()]))


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
