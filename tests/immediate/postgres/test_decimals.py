"""The digits of decimals, as Spark counts them."""

from __future__ import annotations

import sqlglot
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from trickle.engine import Engine
from trickle.immediate.postgres.decimals import Digits, digits_of

COLUMNS = {"a": "decimal(12,2)", "b": "decimal(38,18)", "c": "decimal(5,0)", "i": "int", "n": "bigint", "d": "double"}
ROW = (
    "a",
    "a + i",
    "a * a",
    "a / 3",
    "a / a",
    "a * b",
    "b / a",
    "a - b",
    "n * a",
    "c / b",
    "-a * 100",
    "b * b",
    "a / 0.05",
)
GROUP = ("sum(a)", "avg(a)", "sum(a) / count(*)", "avg(b)", "sum(a * (1 - c)) / sum(a)", "max(a) * 2", "avg(a * c)")
CHOICE = ("coalesce(a, 0.125)", "CASE WHEN i > 0 THEN a ELSE 0 END", "CAST(d AS DECIMAL(5, 1)) * 0.06")


def test_the_types_of_expressions(engine: Engine) -> None:
    columns = ", ".join(f"CAST(1 AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    for texts in ((*ROW, *CHOICE), GROUP):
        listed = ", ".join(f"{text} AS x{place}" for place, text in enumerate(texts))
        described = engine.spark.sql(f"SELECT {listed} FROM (SELECT {columns}) AS t")
        spark = [field.dataType.simpleString() for field in described.schema.fields]
        found = [digits_of(item.this) for item in _typed(f"SELECT {listed} FROM t").expressions]
        ours = [None if digits is None else f"decimal({digits.precision},{digits.scale})" for digits in found]
        assert dict(zip(texts, ours, strict=True)) == dict(zip(texts, spark, strict=True))


def test_what_is_no_decimal() -> None:
    found = [
        digits_of(item.this) for item in _typed("SELECT d * a AS x, avg(i) AS y, count(*) AS z FROM t").expressions
    ]
    assert found == [None, None, Digits(20, 0)]


def _typed(text: str) -> sqlglot.exp.Select:
    schema: dict[str, object] = {"t": COLUMNS}
    tree = qualify(sqlglot.parse_one(text, read="spark"), schema=schema, dialect="spark")
    typed = annotate_types(tree, schema=schema, dialect="spark")
    assert isinstance(typed, sqlglot.exp.Select)
    return typed
