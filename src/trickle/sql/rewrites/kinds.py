"""The types of columns and expressions, as far as they can be told without asking Spark.

Types are Spark's type strings, without digits and lengths: ``decimal(15,2)`` is ``decimal``. What is not told is
missing, and rules that need a type do nothing then.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from trickle.algebra.names import TableName
from trickle.operators import Aggregate, Expr, Operator, Output, Project, Scan

Schemas = Mapping[TableName, Mapping[str, str]]
"""The columns of tables with their types."""
Kinds = Mapping[str, str]
"""The types of columns, by their names in a tree."""

INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "text": "string"}
_SAME_AS_ARGUMENT = frozenset(("max", "min", "first", "last", "any_value", "coalesce", "nullif", "ifnull", "nvl"))
_RESULTS = {
    "bigint": ("count", "count_if", "row_number", "rank", "dense_rank"),
    "int": ("year", "quarter", "month", "day", "hour", "minute", "second", "dayofweek", "dayofyear", "length"),
    "string": (
        *("upper", "lower", "trim", "ltrim", "rtrim", "substr", "substring", "concat", "concat_ws", "replace"),
        *("lpad", "rpad", "left", "right", "date_format", "regexp_replace", "regexp_extract", "initcap", "reverse"),
    ),
    "date": ("to_date", "date_add", "date_sub", "last_day"),
    "timestamp": ("date_trunc", "to_timestamp"),
}
_RESULT_OF = {function: kind for kind, functions in _RESULTS.items() for function in functions}


def kinds_of(tree: Operator, schemas: Schemas) -> Kinds:
    """The types of all columns of a tree. Names that stand for values of two types, as in a union, have none."""
    tables = {(str(table), column): kind for table, columns in schemas.items() for column, kind in columns.items()}
    known: dict[str, str | None] = {}

    def learn(name: str, kind: str | None) -> None:
        known[name] = kind if known.get(name, kind) == kind else None

    def visit(node: Operator) -> None:
        for child in node.inputs:
            visit(child)
        match node:
            case Scan():
                for own, name in node.fields:
                    learn(name, plain(tables.get((node.table, own))))
            case Project() | Aggregate():
                for output in _made(node):
                    learn(output.name, kind_of(output.value, {n: k for n, k in known.items() if k is not None}))
            case _:
                pass

    visit(tree)
    return {name: kind for name, kind in known.items() if kind is not None}


def _made(node: Project | Aggregate) -> tuple[Output, ...]:
    outputs = node.outputs if isinstance(node, Project) else node.calls
    return tuple(output for output in outputs if not _is_itself(output))


def _is_itself(output: Output) -> bool:
    return isinstance(output.value, exp.Column) and output.value.name == output.name


def plain(kind: str | None) -> str | None:
    """A type without its digits; None when it is not known.

    >>> plain("decimal(15,2)"), plain("string collate UNICODE"), plain("")
    ('decimal', 'string collate unicode', None)
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
        case exp.Paren() | exp.Neg():
            return kind_of(expression.this, kinds)
        case exp.Cast():
            return plain(expression.to.sql(dialect="spark"))
        case exp.Literal():
            return "string" if expression.is_string else _number(expression.name)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _arithmetic(kind_of(expression.this, kinds), kind_of(expression.expression, kinds))
        case exp.Anonymous():
            name = expression.name.lower()
            if name in _SAME_AS_ARGUMENT and expression.expressions:
                return kind_of(expression.expressions[0], kinds)
            return _RESULT_OF.get(name)
        case _:
            return None


def _number(text: str) -> str | None:
    return "int" if text.isdecimal() and len(text) < len(str(2**31)) else None


def _arithmetic(left: str | None, right: str | None) -> str | None:
    if left in INTEGERS and right in INTEGERS:
        return "bigint" if "bigint" in (left, right) else "int"
    return left if left == right and left in ("double", "decimal") else None
