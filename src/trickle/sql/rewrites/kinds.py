"""The types of columns and expressions, as far as they can be told without asking Spark.

Types are Spark's type strings, without digits and lengths: ``decimal(15,2)`` is ``decimal``. What is not told is
missing. Rules that take one side of a comparison for the other do so only where both types are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from trickle.algebra.names import TableName
from trickle.operators import Aggregate, Apply, ApplyKind, Expr, Operator, Output, Project, Scan, Values, Window

Schemas = Mapping[TableName, Mapping[str, str]]
"""The columns of tables with their types."""
Kinds = Mapping[str, str]
"""The types of columns, by their names in a tree."""

INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
EXACT = INTEGERS | {"decimal"}
"""Numbers that are kept apart by every conversion among these types."""
INEXACT = frozenset(("float", "double"))
_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "text": "string"}
_SAME_AS_ARGUMENTS = frozenset(
    ("abs", "any_value", "coalesce", "first", "greatest", "ifnull", "lag", "last", "lead", "least", "max", "min", "nvl")
)
_RESULTS = {
    "bigint": ("count", "count_if"),
    "int": (
        *("year", "quarter", "month", "day", "hour", "minute", "dayofweek", "dayofyear", "length"),
        *("row_number", "rank", "dense_rank"),
    ),
    "string": (
        *("upper", "lower", "trim", "ltrim", "rtrim", "substr", "substring", "concat_ws", "replace", "lpad", "rpad"),
        *("date_format", "regexp_replace", "regexp_extract", "initcap"),
    ),
    "date": ("to_date", "date_add", "date_sub", "last_day"),
    "timestamp": ("date_trunc", "to_timestamp"),
}
_RESULT_OF = {function: kind for kind, functions in _RESULTS.items() for function in functions}
_TRUTH = (exp.Boolean, exp.Connector, exp.Not, exp.Predicate)


def are_typed(schemas: Schemas) -> bool:
    """Whether types are known at all. Where they are not, it is not Spark, most likely, that compares."""
    return any(kind for columns in schemas.values() for kind in columns.values())


def kinds_of(tree: Operator, schemas: Schemas) -> dict[str, str]:
    """The types of the columns of a tree. Names that stand for values of two types, as in a union, have none."""
    tables = {(str(table), column): kind for table, columns in schemas.items() for column, kind in columns.items()}
    learning = _Learning(tables)
    learning.visit(tree)
    return learning.known


@dataclass
class _Learning:
    tables: Mapping[tuple[str, str], str]
    known: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)

    def visit(self, node: Operator) -> None:
        for child in node.inputs:
            self.visit(child)
        match node:
            case Scan():
                for own, name in node.fields:
                    self.learn(name, [plain(self.tables.get((node.table, own)))])
            case Project():
                self.made(node.outputs)
            case Aggregate() | Window():
                self.made(node.calls)
            case Values():
                for name, *values in zip(node.names, *node.rows, strict=True):
                    self.learn(
                        name, [kind_of(value, self.known) for value in values if not isinstance(value, exp.Null)]
                    )
            case Apply() if node.output is not None:
                scalar = self.known.get(node.right.columns[0]) if node.kind is ApplyKind.SCALAR else "boolean"
                self.learn(node.output, [scalar])
            case _:
                pass

    def made(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            itself = isinstance(output.value, exp.Column) and output.value.name == output.name
            if not itself and not isinstance(output.value, exp.Null):
                self.learn(output.name, [kind_of(output.value, self.known)])

    def learn(self, name: str, kinds: Iterable[str | None]) -> None:
        kind = same_kind((*kinds, *([self.known[name]] if name in self.known else ())))
        if kind is None or name in self.unsure:
            self.unsure.add(name)
            self.known.pop(name, None)
        else:
            self.known[name] = kind


def same_kind(kinds: Iterable[str | None]) -> str | None:
    """The type that all are, or that keeps all of them apart; None when they differ, or one is not known.

    >>> same_kind(["int", "bigint"]), same_kind(["int", "string"]), same_kind([])
    ('bigint', None, None)
    """
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    if found and found <= EXACT:
        return "decimal" if "decimal" in found else "bigint"
    return None


def plain(kind: str | None) -> str | None:
    """A type without its digits; None when it is not known.

    >>> plain("decimal(15,2)"), plain("varchar(3)"), plain("")
    ('decimal', 'string', None)
    """
    if not kind:
        return None
    name = kind.lower().strip()
    name = name.partition("(")[0] if name.startswith(("decimal", "varchar", "char")) else name
    return {"varchar": "string", "char": "string", **_NAMES}.get(name, name)


def kind_of(expression: Expr, kinds: Kinds) -> str | None:
    """The type of an expression over columns of known types."""
    match expression:
        case exp.Column():
            return kinds.get(expression.name)
        case exp.Paren() | exp.Filter() | exp.Window():
            return kind_of(expression.this, kinds)
        case exp.Neg():
            kind = kind_of(expression.this, kinds)
            return kind if kind in EXACT | INEXACT else None
        case exp.Cast():
            return plain(expression.to.sql(dialect="spark"))
        case exp.Literal():
            return "string" if expression.is_string else _number(expression.name)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
            return _arithmetic(expression, kinds)
        case exp.Case():
            branches = [*(branch.args["true"] for branch in expression.args["ifs"]), expression.args.get("default")]
            return same_kind(kind_of(each, kinds) for each in branches if each and not isinstance(each, exp.Null))
        case exp.Anonymous():
            return _result(expression.name.lower(), expression.expressions, kinds)
        case _:
            return "boolean" if isinstance(expression, _TRUTH) else None


def _number(text: str) -> str | None:
    if text.isdecimal():
        return "int" if len(text) < len(str(2**31)) else "bigint"
    return "decimal" if text.replace(".", "", 1).isdecimal() else None


def _arithmetic(expression: Expr, kinds: Kinds) -> str | None:
    both = {kind_of(expression.this, kinds), kind_of(expression.expression, kinds)}
    if both <= EXACT:
        kind = same_kind(both)
        return "double" if isinstance(expression, exp.Div) and kind != "decimal" else kind
    return "double" if both <= EXACT | INEXACT else None


def _result(name: str, arguments: list[Expr], kinds: Kinds) -> str | None:
    if name in _SAME_AS_ARGUMENTS:
        values = arguments[:1] if name in ("lag", "lead", "first", "last") else arguments
        kind = same_kind(kind_of(each, kinds) for each in values if not isinstance(each, exp.Null))
        return kind if name != "abs" or kind in EXACT | INEXACT else None
    if name in ("sum", "avg") and len(arguments) == 1:
        kind = kind_of(arguments[0], kinds)
        if kind in INTEGERS:
            return "bigint" if name == "sum" else "double"
        return {"decimal": "decimal", "float": "double", "double": "double"}.get(kind or "")
    return _RESULT_OF.get(name)
