"""What a query holds that matters for keeping its result."""

from __future__ import annotations

import pytest

from trickle.sql import query


@pytest.mark.parametrize(
    "expression, names",
    [
        ("a + 1", ()),
        ("rand()", ("rand",)),
        ("RANDOM(3) + RandN()", ("randn", "random")),
        ("`uuid`()", ("uuid",)),
        ("array(1, shuffle(b))", ("shuffle",)),
        ("monotonically_increasing_id()", ("monotonically_increasing_id",)),
        ("spark_partition_id()", ("spark_partition_id",)),
        ("input_file_name()", ("input_file_name",)),
        ("randstr(5)", ("randstr",)),
        ("uniform(1, 2)", ("uniform",)),
        ("java_method('java.lang.Math', 'random')", ("java_method",)),
        ("(SELECT max(rand()) FROM u)", ("rand",)),
        ("rand, 'rand()', `rand()`, t.uuid", ()),
        ("sum(a) OVER (ORDER BY rand())", ("rand",)),
    ],
)
def test_volatile_functions_are_named(expression: str, names: tuple[str, ...]) -> None:
    assert query(f"SELECT {expression} FROM t").volatile == names


@pytest.mark.parametrize(
    "expression",
    [
        "current_timestamp",
        "current_timestamp()",
        "CURRENT_DATE",
        "current_date()",
        "curdate()",
        "now()",
        "localtimestamp",
        "localtimestamp()",
        "current_time",
        "current_time()",
        "unix_timestamp()",
        "from_unixtime(unix_timestamp())",
        "date_add(current_date, 1)",
        "DATE 'today'",
        "TIMESTAMP 'now'",
        "timestamp_ntz 'tomorrow'",
        "CAST('yesterday' AS DATE)",
        "'now'::timestamp",
        "to_date('now')",
        "date('now')",
        "(SELECT max(b) FROM u WHERE b < now())",
    ],
)
def test_clocks(expression: str) -> None:
    assert query(f"SELECT {expression} FROM t").time_dependent


@pytest.mark.parametrize(
    "expression",
    [
        "unix_timestamp(a)",
        "to_timestamp(a)",
        "`current_date`",
        "t.current_date",
        "now",
        "'now()'",
        "DATE '2026-01-01'",
        "CAST('now' AS STRING)",
        "concat('today', a)",
        "CAST('' AS DATE)",
    ],
)
def test_no_clocks(expression: str) -> None:
    assert not query(f"SELECT {expression} FROM t").time_dependent


@pytest.mark.parametrize(
    "text, arbitrary",
    [
        ("SELECT a FROM t", False),
        ("SELECT a FROM t LIMIT 3", True),
        ("SELECT a FROM t OFFSET 3", True),
        ("SELECT a FROM t FETCH FIRST 3 ROWS ONLY", True),
        ("SELECT a FROM t LIMIT ALL", False),
        ("SELECT a FROM t ORDER BY a LIMIT 3", False),
        ("(SELECT a FROM t ORDER BY a) LIMIT 3", False),
        ("SELECT a FROM t UNION SELECT b FROM u LIMIT 3", True),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a LIMIT 3", False),
        ("SELECT * FROM (SELECT a FROM t LIMIT 3) ORDER BY a", True),
        ("SELECT (SELECT a FROM t LIMIT 1)", True),
        ("WITH x AS (SELECT a FROM t LIMIT 1) SELECT * FROM x", True),
        ("TABLE t LIMIT 3", True),
    ],
)
def test_limit_without_order(text: str, arbitrary: bool) -> None:
    assert query(text).limit_without_order is arbitrary


@pytest.mark.parametrize(
    "text, pointless",
    [
        ("SELECT a FROM t", False),
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t ORDER BY a LIMIT 3", False),
        ("SELECT a FROM t SORT BY a", True),
        ("(SELECT a FROM t ORDER BY a)", True),
        ("((SELECT a FROM t ORDER BY a) LIMIT 3)", False),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a", True),
        ("SELECT * FROM (SELECT a FROM t ORDER BY a) x", False),
        ("SELECT sum(a) OVER (ORDER BY b) FROM t", False),
    ],
)
def test_order_without_limit(text: str, pointless: bool) -> None:
    assert query(text).order_without_limit is pointless


def test_table_sample() -> None:
    assert query("SELECT * FROM t TABLESAMPLE (5 PERCENT)").table_sample
    assert query("SELECT * FROM (SELECT 1) TABLESAMPLE (5 ROWS)").table_sample
    assert not query("SELECT a.tablesample FROM t a").table_sample
