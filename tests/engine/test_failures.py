"""Spark's exceptions come out as ours, with the remedy in the class and no stack trace in the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from trickle.engine import Engine, spark_errors
from trickle.engine.failures import _first_line
from trickle.errors import (
    CorruptTable,
    HistoryLost,
    InvalidData,
    ParseError,
    QueryError,
    SparkUnavailable,
    TrickleError,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
)


def collect(engine: Engine, text: str) -> None:
    with spark_errors():
        engine.sql(text).collect()


@pytest.mark.portable
@pytest.mark.parametrize(
    "query, kind, message",
    [
        ("SELECT amout FROM VALUES (1) AS t(amount)", UnknownColumn, "unknown column amout"),
        ("SELECT t.x FROM VALUES (1) AS t(amount)", UnknownColumn, "unknown column t.x"),
        ("SELECT struct(1 AS q).r", UnknownColumn, "unknown column r"),
        ("SELECT * FROM nowhere.orders", UnknownTable, "unknown table nowhere.orders"),
        ("SELECT nofunction(1)", UnknownFunction, "unknown function nofunction"),
        ("SELEC 1", ParseError, "syntax error at or near 'SELEC'"),
        ("SELECT id, sum(id) FROM range(3)", QueryError, "the query does not include a GROUP BY clause"),
        ("SELECT 1 / id FROM range(3)", QueryError, "division by zero"),
        ("SELECT 9223372036854775807 + id FROM range(3)", QueryError, "overflow"),
        ("SELECT raise_error('boom') FROM range(3)", QueryError, "boom"),
        (
            "SELECT (SELECT id FROM range(3))",
            QueryError,
            "more than one row returned by a subquery used as an expression",
        ),
        (
            "SELECT CAST(concat('x', id) AS INT) FROM range(1)",
            InvalidData,
            """the value 'x0' of the type "STRING" cannot be cast to "INT" because it is malformed""",
        ),
        (
            "SELECT CAST(id + 300 AS TINYINT) FROM range(1)",
            InvalidData,
            """the value 300L of the type "BIGINT" cannot be cast to "TINYINT" due to an overflow""",
        ),
    ],
)
def test_a_bad_query_gives_our_error(engine: Engine, query: str, kind: type[TrickleError], message: str) -> None:
    with pytest.raises(kind) as caught:
        collect(engine, query)
    assert caught.value.message == message
    told = str(caught.value)
    assert "SQLSTATE" not in told
    assert "org.apache" not in told
    assert "ansi" not in told


@pytest.mark.portable
def test_the_nearest_column_is_offered(engine: Engine) -> None:
    with pytest.raises(UnknownColumn) as caught:
        collect(engine, "SELECT t.custmer FROM VALUES (1, 2) AS t(amount, customer)")
    assert caught.value.hint == "did you mean t.customer?"


@pytest.mark.portable
def test_a_syntax_error_has_its_place(engine: Engine) -> None:
    with pytest.raises(ParseError) as caught:
        collect(engine, "SELECT 1\nFROM range(3) WHERE )")
    assert (caught.value.line, caught.value.column) == (2, 21)


@pytest.mark.portable
def test_spark_advice_becomes_the_hint(engine: Engine) -> None:
    with pytest.raises(QueryError) as caught:
        collect(engine, "SELECT 1 / id FROM range(3)")
    assert caught.value.hint == "Use `try_divide` to tolerate divisor being 0 and return NULL instead"


@pytest.mark.portable
@pytest.mark.parametrize("action", ["collect", "toArrow"])
def test_a_data_file_that_vanished_is_lost_history(spark: SparkSession, tmp_path: Path, action: str) -> None:
    place = tmp_path / "rows"
    spark.range(3).coalesce(1).write.parquet(str(place))
    rows = spark.read.schema("id BIGINT").parquet(str(place))
    assert rows.schema.names == ["id"]
    [file] = place.glob("*.parquet")
    file.unlink()
    with pytest.raises(HistoryLost) as caught, spark_errors():
        getattr(rows, action)()
    assert (caught.value.detail or "").endswith(file.name)


@pytest.mark.portable
def test_a_path_that_never_was_is_lost_history(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HistoryLost, match="nowhere"), spark_errors():
        spark.read.schema("id BIGINT").parquet(str(tmp_path / "nowhere")).collect()


@pytest.mark.portable
def test_a_damaged_data_file_is_a_corrupt_table(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"not parquet" * 10)
    with pytest.raises(CorruptTable, match=r"rows\.parquet"), spark_errors():
        spark.read.schema("id BIGINT").parquet(str(file)).collect()


@pytest.mark.portable
def test_rows_of_the_wrong_type_are_invalid_data(spark: SparkSession) -> None:
    with pytest.raises(InvalidData), spark_errors():
        spark.createDataFrame([("one",)], "id BIGINT").collect()


def test_a_broken_connection_says_that_spark_is_gone() -> None:
    with pytest.raises(SparkUnavailable, match="connection refused"), spark_errors():
        raise ConnectionRefusedError("connection refused")


def test_other_exceptions_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), spark_errors():
        raise ZeroDivisionError
    with pytest.raises(AttributeError), spark_errors():
        None.nothing  # type: ignore[attr-defined]  # noqa: B018  the mistake is the test


def test_our_own_errors_pass_unchanged() -> None:
    ours = UnknownTable("unknown table t")
    with pytest.raises(UnknownTable) as caught, spark_errors():
        raise ours
    assert caught.value is ours


def test_of_what_was_waited_for_the_cause_is_told() -> None:
    text = """An error occurred while calling o38.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:1)
Caused by: org.apache.spark.util.SparkFatalException
\t... 7 more
Caused by: java.lang.OutOfMemoryError: Java heap space
"""
    assert _first_line(text) == "java.lang.OutOfMemoryError: Java heap space"
    assert _first_line(text.replace("Exception thrown in awaitResult:", "Job aborted")) == (
        "org.apache.spark.SparkException: Job aborted"
    )
