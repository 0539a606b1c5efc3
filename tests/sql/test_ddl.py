"""CREATE TABLE, CREATE VIEW, DROP, TRUNCATE."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, ParseError, TrickleError, UnknownColumn, UnsupportedStatement
from trickle.sql import ColumnDef, CreateTable, CreateView, Drop, Statement, Truncate, parse, query

T = TableName.of(["t"])
A = ColumnDef("a", "INT")


def only(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


@pytest.mark.parametrize(
    "text, statement",
    [
        ("CREATE TABLE t (a INT)", CreateTable(T, (A,))),
        ("create table S.T (a INT)", CreateTable(TableName.of(["s", "t"]), (A,))),
        ("CREATE OR REPLACE TABLE t (a INT)", CreateTable(T, (A,), or_replace=True)),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", CreateTable(T, (A,), if_not_exists=True)),
        ("CREATE TABLE t (a INT) USING DELTA", CreateTable(T, (A,))),
        (
            "CREATE TABLE t (a INT NOT NULL COMMENT 'it''s', b STRING NULL)",
            CreateTable(T, (ColumnDef("a", "INT", nullable=False, comment="it's"), ColumnDef("b", "STRING"))),
        ),
        ("CREATE TABLE t (a INT PRIMARY KEY)", CreateTable(T, (ColumnDef("a", "INT", nullable=False),), ("a",))),
        (
            "CREATE TABLE t (a INT, b INT, PRIMARY KEY (B, a))",
            CreateTable(T, (ColumnDef("a", "INT", nullable=False), ColumnDef("b", "INT", nullable=False)), ("b", "a")),
        ),
        (
            "CREATE TABLE t (a INT, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED)",
            CreateTable(T, (ColumnDef("a", "INT", nullable=False),), ("a",)),
        ),
        ("CREATE TABLE t (a INT) PARTITIONED BY (A)", CreateTable(T, (A,), partitioned_by=("a",))),
        (
            "CREATE TABLE t (a INT) COMMENT 'x' TBLPROPERTIES ('k.l' = 'v', m = 3, n = TRUE)",
            CreateTable(T, (A,), comment="x", properties={"k.l": "v", "m": "3", "n": "true"}),
        ),
        ("CREATE TABLE t AS SELECT 1", CreateTable(T, query=query("SELECT 1"))),
        ("CREATE TABLE t SELECT 1", CreateTable(T, query=query("SELECT 1"))),
        ("CREATE TABLE t (SELECT 1)", CreateTable(T, query=query("(SELECT 1)"))),
        (
            "CREATE TABLE t USING delta PARTITIONED BY (a) AS TABLE u",
            CreateTable(T, partitioned_by=("a",), query=query("TABLE u")),
        ),
        (
            "CREATE TABLE t (PRIMARY KEY (a)) AS SELECT 1 AS a",
            CreateTable(T, primary_key=("a",), query=query("SELECT 1 AS a")),
        ),
        (
            "CREATE VIEW t AS SELECT * FROM s.u -- why",
            CreateView(T, query("SELECT * FROM s.u")),
        ),
        (
            "CREATE OR REPLACE VIEW t (a, b) COMMENT 'x' AS SELECT 1, 2",
            CreateView(T, query("SELECT 1, 2"), or_replace=True, columns=("a", "b"), comment="x"),
        ),
        ("CREATE VIEW IF NOT EXISTS t AS VALUES (1)", CreateView(T, query("VALUES (1)"), if_not_exists=True)),
        ("DROP TABLE t", Drop("table", T)),
        ("DROP TABLE IF EXISTS t CASCADE", Drop("table", T, if_exists=True, cascade=True)),
        ("DROP VIEW t RESTRICT", Drop("view", T)),
        ("TRUNCATE TABLE t", Truncate(T)),
        ("TRUNCATE t", Truncate(T)),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert only(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "INT",
        "DECIMAL(12, 2)",
        "MAP<STRING, ARRAY<INT>>",
        "STRUCT<a: INT COMMENT 'x, y', b: STRUCT<c: DECIMAL(3,1) NOT NULL>>",
        "ARRAY<ARRAY<ARRAY<INT>>>",
        "STRUCT<>",
        "INTERVAL DAY TO SECOND",
        "TIMESTAMP_NTZ",
        "DOUBLE PRECISION",
        "STRING COLLATE UTF8_LCASE",
        "map < string , int >",
    ],
)
def test_types_are_kept_as_typed(text: str) -> None:
    statement = only(f"CREATE TABLE t (a {text}, b {text} NOT NULL, c {text} COMMENT 'x')")
    assert isinstance(statement, CreateTable)
    assert [column.type for column in statement.columns] == [text] * 3


def test_columns_may_have_the_names_of_keywords() -> None:
    statement = only("CREATE TABLE t (check INT, primary STRING, constraint INT, `a``b` INT, größe INT, 1st INT)")
    assert isinstance(statement, CreateTable)
    assert [column.name for column in statement.columns] == ["check", "primary", "constraint", "a`b", "größe", "1st"]


@pytest.mark.parametrize(
    "text, named",
    [
        ("CREATE TABLE t (a INT DEFAULT 3)", "DEFAULT"),
        ("CREATE TABLE t (a INT GENERATED ALWAYS AS (b))", "GENERATED"),
        ("CREATE TABLE t (a INT CHECK (a > 1))", "CHECK"),
        ("CREATE TABLE t (a INT REFERENCES u (b))", "REFERENCES"),
        ("CREATE TABLE t (a INT UNIQUE)", "UNIQUE"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b))", "FOREIGN KEY"),
        ("CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 1))", "CHECK"),
        ("CREATE TABLE t (a INT) CLUSTER BY (a)", "CLUSTER BY"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 3 BUCKETS", "CLUSTERED BY"),
        ("CREATE TABLE t (a INT) LOCATION '/x'", "LOCATION"),
        ("CREATE TABLE t (a INT) OPTIONS (b = 1)", "OPTIONS"),
        ("CREATE TABLE t (a INT) STORED AS PARQUET", "STORED"),
        ("CREATE TABLE t LIKE u", "LIKE"),
        ("CREATE TABLE t (a INT) USING parquet", "parquet"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (days(a))", "days"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b INT)", "PARTITIONED BY"),
        ("CREATE TABLE t (a.b INT)", "a.b"),
        ("CREATE TEMP VIEW t AS SELECT 1", "CREATE TEMP"),
        ("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 1", "CREATE TEMPORARY"),
        ("CREATE EXTERNAL TABLE t (a INT)", "CREATE EXTERNAL"),
        ("CREATE FUNCTION f AS 'x'", "CREATE FUNCTION"),
        ("CREATE SCHEMA s", "CREATE SCHEMA"),
        ("DROP TABLE t PURGE", "PURGE"),
        ("DROP SCHEMA s", "DROP SCHEMA"),
        ("TRUNCATE TABLE t PARTITION (a = 1)", "PARTITION"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_with_a_hint(text: str, named: str) -> None:
    with pytest.raises(UnsupportedStatement, match=named) as caught:
        parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("CREATE TABLE t", ParseError, "columns or a query"),
        ("CREATE TABLE t ()", ParseError, "name of a column"),
        ("CREATE TABLE t (a)", ParseError, "a type"),
        ("CREATE TABLE t (a INT", ParseError, "expected \\)"),
        ("CREATE TABLE t (a ARRAY<INT)", ParseError, "expected|closed"),
        ("CREATE TABLE t (a INT) nonsense", ParseError, "unexpected"),
        ("CREATE TABLE t (a INT COMMENT 3)", ParseError, "in quotes"),
        ("CREATE TABLE t (a INT) AS SELECT 1", ParseError, "takes its columns"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", ParseError, "contradict"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", ParseError, "one primary key"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", UnknownColumn, "'b'"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b)", UnknownColumn, "'b'"),
        ("CREATE TABLE t (a INT, A STRING)", InvalidName, "twice"),
        ("CREATE TABLE t (`a b` INT)", InvalidName, "holds"),
        ("CREATE TABLE t (__trickle_a INT)", InvalidName, "reserved"),
        ("CREATE TABLE a.b.c (a INT)", InvalidName, "one or two parts"),
        ("CREATE TABLE trickle.t (a INT)", InvalidName, "read-only"),
        ("CREATE VIEW TRICKLE.t AS SELECT 1", InvalidName, "read-only"),
        ("DROP TABLE `trickle`.t", InvalidName, "read-only"),
        ("TRUNCATE TABLE trickle.t", InvalidName, "read-only"),
        ("CREATE TABLE 't' (a INT)", ParseError, "name of a table"),
        ("CREATE VIEW v", ParseError, "expected AS"),
        ("CREATE VIEW v AS DROP TABLE t", ParseError, "a query is expected"),
        ("CREATE", ParseError, "not complete"),
        ("DROP TABLE", ParseError, "name of a table"),
        ("DROP TABLE t u", ParseError, "unexpected 'u'"),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)


def test_a_misspelled_key_column_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownColumn) as caught:
        parse("CREATE TABLE t (customer STRING, PRIMARY KEY (custmer))")
    assert caught.value.hint == "did you mean 'customer'?"
