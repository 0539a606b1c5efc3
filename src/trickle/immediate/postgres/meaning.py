"""What means the same in Spark's SQL and in PostgreSQL's, and what has to be said in other words (pure).

Everything that a tree may hold is listed here. What is not listed is refused: a function may have the same name in both
and treat NULL, rounding, time zones or letters in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.decimals import FLOATS, INTEGERS, Digits, digits_of, mean, quotient
from trickle.operators import Expr

_QUERIES: tuple[type[Expr], ...] = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Limit, exp.Offset, exp.Distinct,
    exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.Table, exp.TableAlias, exp.Values,
    exp.Tuple, exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Paren,
    exp.DataType, exp.DataTypeParam, exp.Window, exp.WindowSpec, exp.Filter, exp.Qualify, exp.Fetch, exp.Var,
)  # fmt: skip
_VALUES: tuple[type[Expr], ...] = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Exists, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Add, exp.Mul, exp.Neg, exp.Abs, exp.Like, exp.Escape, exp.Length,
    exp.Interval, exp.Count, exp.Sum, exp.Any, exp.All, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp,
    exp.StddevPop, exp.CountIf, exp.LogicalAnd, exp.LogicalOr, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile,
    exp.PercentRank, exp.CumeDist, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
_DIGITS = "trickle_digits"
_TEXTS = frozenset(exp.DataType.TEXT_TYPES) | {exp.DType.UNKNOWN, None}
_DATES = frozenset((exp.DType.DATE,))
_MOMENTS = frozenset((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ))


@dataclass(frozen=True)
class Meaning:
    """Says a typed tree of Spark's in PostgreSQL's words; UnsupportedQuery where they are not known."""

    by_bytes: bool

    def translated(self, tree: Expr) -> Expr:
        """The tree, changed in place from the inside out."""
        root = exp.Tuple(expressions=[tree])
        nodes = list(tree.walk(bfs=False))
        for node in nodes:
            # Of what Spark reads: what is written for it may have another type.
            node.meta[_DIGITS] = digits_of(node)
        for node in reversed(nodes):
            new = self._said(node)
            if new is not node:
                new.type, new.meta[_DIGITS] = new.type or node.type, node.meta[_DIGITS]
                node.replace(new)
        found: Expr = root.expressions[0]
        found.pop()
        return found

    def _said(self, node: Expr) -> Expr:
        rule = _RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        if not isinstance(node, _QUERIES + _VALUES):
            raise _unknown(node)
        return node

    def ordered(self, node: Expr, *values: Expr) -> Expr:
        """Refuse an order of texts that is not that of their bytes."""
        if not self.by_bytes and all(_kind(value) in _TEXTS for value in values) and not _are_literals(values):
            raise UnsupportedQuery(
                f"{_shown(node)} orders text, and this database does not order it by its bytes as Spark does",
                hint='use DIFFERENTIAL, or a database whose collation is "C"',
            )
        return node


def _compared(meaning: Meaning, node: Expr) -> Expr:
    return meaning.ordered(node, node.this, node.expression)


def _between(meaning: Meaning, node: Expr) -> Expr:
    return meaning.ordered(node, node.this, node.args["low"], node.args["high"])


def _in_order(meaning: Meaning, node: Expr) -> Expr:
    return meaning.ordered(node, node.this)


def _extreme(meaning: Meaning, node: Expr) -> Expr:
    if isinstance(node, exp.Greatest | exp.Least):
        return meaning.ordered(node, node.this, *node.expressions)
    if node.expressions:
        raise _unknown(node)
    return meaning.ordered(node, node.this)


def _member(_: Meaning, node: Expr) -> Expr:
    """IN a query, as a value, is never NULL in Spark; as a condition that makes no difference."""
    if node.args.get("query") is None:
        return node
    inside, outside = node, node.parent
    while isinstance(outside, exp.And | exp.Or | exp.Not | exp.Paren):
        inside, outside = outside, outside.parent
    if isinstance(outside, exp.Where | exp.Having | exp.Qualify) or (
        isinstance(outside, exp.Join) and inside.arg_key == "on"
    ):
        return node
    raise UnsupportedQuery(
        f"{_shown(node)} is used as a value",
        detail="where it is not known PostgreSQL has NULL, and Spark has false",
        hint="use it as a condition, or use DIFFERENTIAL",
    )


def _difference(_: Meaning, node: Expr) -> Expr:
    if _kind(node.this) in _DATES | _MOMENTS and _kind(node.expression) in _DATES | _MOMENTS:
        raise _unknown(node, "it is an interval in Spark and a number of days in PostgreSQL; write datediff(a, b)")
    return node


def _divided(_: Meaning, node: Expr) -> Expr:
    kinds = {_kind(node.this), _kind(node.expression)}
    digits, by = _digits(node.this), _digits(node.expression)
    if kinds <= INTEGERS or ((digits is None or by is None) and kinds & FLOATS):
        return _quotient(_cast(node.this, "double precision"), node.expression)
    if digits is None or by is None:
        raise _unknown(node, "how many digits Spark gives it is not known here; cast both sides to DECIMAL(p, s)")
    made = quotient(digits, by)
    # With so many digits on the left PostgreSQL computes as many of the quotient.
    long = _cast(node.this, f"numeric({made.precision + digits.precision}, {made.scale})")
    return _decimal(exp.paren(_quotient(long, node.expression)), made)


def _divided_whole(_: Meaning, node: Expr) -> Expr:
    if _kind(node.this) not in INTEGERS or _kind(node.expression) not in INTEGERS:
        raise _unknown(node, "only integers are divided alike")
    return _quotient(node.this, node.expression)


def _remainder(_: Meaning, node: Expr) -> Expr:
    if {_kind(node.this), _kind(node.expression)} & FLOATS:
        raise _unknown(node, "PostgreSQL has no remainder of floating numbers")
    return node


def _averaged(_: Meaning, node: Expr) -> Expr:
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) != 1:
        raise _unknown(node)
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if _kind(value) in FLOATS:
        return node
    if _kind(value) in INTEGERS:
        return _cast(node, "double precision")
    of = _digits(value)
    if of is None:
        raise _unknown(node, "how many digits Spark gives it is not known here; cast what it is of to DECIMAL(p, s)")
    made = mean(of)
    value.replace(_decimal(value, made))
    return _decimal(node, made)


def _summed(_: Meaning, node: Expr) -> Expr:
    if _kind(node.this) is exp.DType.FLOAT:
        # PostgreSQL adds them up as they are, and Spark as double.
        node.set("this", _cast(node.this, "double precision"))
    return node


def _counted(_: Meaning, node: Expr) -> Expr:
    several = isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1
    if several or node.expressions:
        raise _unknown(node, "rows of several values with a NULL count in PostgreSQL, and not in Spark")
    return node


def _rounded(_: Meaning, node: Expr) -> Expr:
    if _digits(node.this) is None:
        raise _unknown(node, "floating numbers are rounded in different ways")
    return node


def _joined(_: Meaning, node: Expr) -> Expr:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else list(node.expressions)
    if any(_kind(part) not in exp.DataType.TEXT_TYPES for part in parts):
        raise _unknown(node, "only texts are joined alike; cast the others")
    whole = parts[0].copy()
    for part in parts[1:]:
        whole = exp.DPipe(this=whole, expression=part.copy())
    return exp.paren(whole, copy=False)


def _part(_: Meaning, node: Expr) -> Expr:
    bounds = [node.args.get("start"), node.args.get("length")]
    if not all(bound is None or (isinstance(bound, exp.Literal) and bound.is_int) for bound in bounds):
        raise _unknown(node, "places below 1 mean something else; write them as numbers")
    if bounds[0] is not None and bounds[0].name == "0":
        raise _unknown(node, "place 0 means something else")
    return node


def _trimmed(_: Meaning, node: Expr) -> Expr:
    if node.expression:
        raise _unknown(node)
    return node


def _field(_: Meaning, node: Expr) -> Expr:
    """A part of a date, which is an integer in Spark."""
    name = node.this.name if isinstance(node, exp.Extract) else type(node).__name__
    value = node.expression if isinstance(node, exp.Extract) else _date_in(node.this)
    if name.upper() not in ("YEAR", "QUARTER", "MONTH", "DAY") or _kind(value) not in _DATES | _MOMENTS:
        raise _unknown(node)
    return _cast(exp.Extract(this=exp.var(name.upper()), expression=value.copy()), "integer")


def _days_added(_: Meaning, node: Expr) -> Expr:
    value = _date_in(node.this)
    if node.text("unit").upper() not in ("", "DAY") or _kind(value) not in _DATES:
        raise _unknown(node)
    later = exp.paren(exp.Add(this=value.copy(), expression=exp.paren(node.expression)), copy=False)
    later.type = exp.DataType(this=exp.DType.DATE)
    return later


def _days_between(_: Meaning, node: Expr) -> Expr:
    one, other = _date_in(node.this), _date_in(node.expression)
    if node.text("unit").upper() not in ("", "DAY") or {_kind(one), _kind(other)} != _DATES:
        raise _unknown(node)
    return exp.paren(exp.Sub(this=one.copy(), expression=other.copy()), copy=False)


def _date_in(value: Expr) -> Expr:
    """What sqlglot has put into something that takes dates, texts and timestamps alike."""
    while isinstance(value, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) or (
        isinstance(value, exp.Cast) and _kind(value.this) in _DATES and _kind(value) in _DATES | _MOMENTS
    ):
        value = value.this
    return value


def _taken_as_date(_: Meaning, node: Expr) -> Expr:
    if _kind(node.this) not in _DATES and not isinstance(node.parent, exp.Func):
        raise _unknown(node)
    return node


def _converted(_: Meaning, node: Expr) -> Expr:
    to, of = node.args["to"].this, _kind(node.this)
    # sqlglot takes CAST of Spark's for TRY_CAST. Nothing is left here that could fail and be NULL.
    plain = exp.Cast(this=node.this.copy(), to=node.args["to"].copy())
    literal = isinstance(node.this, exp.Literal | exp.Null | exp.Neg)
    match to:
        case _ if to in INTEGERS:
            if of in INTEGERS or literal:
                return plain
            if of in FLOATS or of is exp.DType.DECIMAL:
                # Spark cuts, PostgreSQL rounds.
                plain.set("this", exp.Anonymous(this="trunc", expressions=[node.this.copy()]))
                return plain
        case exp.DType.DOUBLE | exp.DType.FLOAT | exp.DType.DECIMAL:
            if literal or of in INTEGERS | FLOATS | {exp.DType.DECIMAL}:
                return plain
        case exp.DType.DATE | exp.DType.TIMESTAMP | exp.DType.TIMESTAMPTZ | exp.DType.TIMESTAMPNTZ:
            if isinstance(node.this, exp.Literal) or of in _DATES | _MOMENTS:
                return plain
        case exp.DType.TEXT | exp.DType.VARCHAR:
            if literal or of in INTEGERS | _DATES or of in exp.DataType.TEXT_TYPES:
                return plain
        case _:
            pass
    raise _unknown(node, "the conversion may give something else")


def _grouped(_: Meaning, node: Expr) -> Expr:
    if any(node.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals", "all")):
        raise _unknown(node, "over no rows PostgreSQL has a grand total, and Spark has none")
    return node


def _digits(value: Expr) -> Digits | None:
    found: Digits | None = value.meta.get(_DIGITS)
    return found


def _kind(value: Expr | None) -> exp.DType | None:
    return None if value is None or value.type is None else value.type.this


def _are_literals(values: tuple[Expr, ...]) -> bool:
    return all(isinstance(value, exp.Literal) for value in values)


def _cast(value: Expr, kind: str) -> exp.Cast:
    return exp.Cast(this=value.copy(), to=exp.DataType(this=exp.DType.USERDEFINED, kind=kind))


def _decimal(value: Expr, digits: Digits) -> exp.Cast:
    return _cast(value, f"numeric({digits.precision}, {digits.scale})")


def _quotient(left: Expr, right: Expr) -> exp.Div:
    return exp.Div(this=left.copy(), expression=right.copy(), typed=True, safe=False)


def _unknown(node: Expr, why: str | None = None) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"{_shown(node)} is not known to mean the same in PostgreSQL as in Spark", detail=why, hint="use DIFFERENTIAL"
    )


def _shown(node: Expr) -> str:
    text = node.sql("spark", identify=False)
    return text if len(text) <= 60 else text[:57] + "..."


_RULES: dict[type[Expr], Callable[[Meaning, Expr], Expr]] = {
    exp.LT: _compared, exp.LTE: _compared, exp.GT: _compared, exp.GTE: _compared, exp.Between: _between,
    exp.Ordered: _in_order, exp.Min: _extreme, exp.Max: _extreme, exp.Greatest: _extreme, exp.Least: _extreme,
    exp.In: _member, exp.Sub: _difference, exp.Div: _divided, exp.IntDiv: _divided_whole, exp.Mod: _remainder,
    exp.Avg: _averaged, exp.Sum: _summed, exp.Count: _counted, exp.Round: _rounded, exp.DPipe: _joined,
    exp.Concat: _joined, exp.Substring: _part, exp.Trim: _trimmed, exp.Extract: _field, exp.Year: _field,
    exp.Quarter: _field, exp.Month: _field, exp.Day: _field, exp.TsOrDsAdd: _days_added, exp.DateAdd: _days_added,
    exp.DateDiff: _days_between, exp.TsOrDsDiff: _days_between, exp.TsOrDsToDate: _taken_as_date,
    exp.TsOrDsToTimestamp: _taken_as_date, exp.Cast: _converted,
    exp.TryCast: _converted, exp.Group: _grouped,
}  # fmt: skip
