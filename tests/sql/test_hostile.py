"""Hostile text works or ends in a clear error, in seconds."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import TrickleError, UnsupportedQuery
from trickle.sql import CreateTable, Insert, Select, Update, parse, query, split

NAMES = [
    "a'b",
    'a"b',
    "a;b",
    "a--b",
    "a/*b",
    "a`b",
    "a b",
    "a.b",
    "'; DROP TABLE x; --",
    "日本語",
    "\U0001f600",
    "ß",
    "select",
    "a\\",
]
MEGABYTE = 1_000_000


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_names(name: str) -> None:
    create, insert, select = parse(
        f"CREATE TABLE {quoted(name)}.{quoted(name)} (a INT); INSERT INTO {quoted(name)} VALUES (1); "
        f"SELECT * FROM {quoted(name)} JOIN {quoted(name)}.{quoted(name)} y"
    )
    assert isinstance(create, CreateTable)
    assert isinstance(insert, Insert)
    assert isinstance(select, Select)
    assert (create.name.schema, create.name.table) == (name, name)
    assert insert.name.table == name
    assert select.query.tables == {TableName.of([name]), TableName.of([name, name])}
    assert (
        select.query.bind(lambda n: n.table) == f"SELECT * FROM {quoted(name)} AS {quoted(name)} JOIN {quoted(name)} y"
    )


@pytest.mark.parametrize("name", NAMES)
def test_views_may_have_any_name(name: str) -> None:
    assert query("SELECT * FROM t x").bind(lambda _: name) == f"SELECT * FROM {quoted(name)} x"


def test_a_select_of_ten_thousand_columns() -> None:
    columns = ", ".join(f"s.t.c{i}" for i in range(10_000))
    assert len(query(f"SELECT {columns} FROM s.t").cuts) == 10_000


def test_a_table_of_ten_thousand_columns() -> None:
    (table,) = parse("CREATE TABLE t (" + ", ".join(f"c{i} INT" for i in range(10_000)) + ")")
    assert isinstance(table, CreateTable)
    assert len(table.columns) == 10_000


def test_a_flat_condition_of_a_megabyte() -> None:
    condition = " OR ".join(f"a = {i}" for i in range(MEGABYTE // 12))
    (update,) = parse(f"UPDATE t SET a = 1 WHERE {condition}")
    assert isinstance(update, Update)
    assert update.where is not None
    assert update.where.text == condition


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '" + "a" * MEGABYTE + "'",
        "SELECT 1 /*" + "a" * MEGABYTE + "*/",
        "SELECT" + " " * MEGABYTE + "1",
        "SELECT 1" + ";" * (MEGABYTE // 10),
    ],
    ids=["string", "comment", "spaces", "semicolons"],
)
def test_a_megabyte_of_little(text: str) -> None:
    assert len(parse(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "(" * 5000,
        "SELECT " + "NOT " * 5000 + "true",
        "SELECT " + "CASE WHEN " * 5000,
        "SELECT " + "[" * 5000,
        "CREATE STREAM TABLE s AS SELECT " + "(SELECT " * 5000,
        "CREATE TABLE t (a STRUCT<" + "(" * 5000,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match="nested too deeply"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '",
        "SELECT /*",
        "SELECT `",
        "SELECT \0",
        "\0",
        "SELECT '\udcff'",
        ")))",
        "SELECT " + "a" * MEGABYTE + " FROM " + "a" * MEGABYTE,
        "SELECT 'a'b'c'd'",
        "SELECT x'zz'",
        "SELECT * FROM ",
        "CREATE TABLE",
        "MERGE INTO",
        "ALTER",
        "SELECT " + "- " * 5000,
        "SELECT SELECT SELECT",
        "WITH",
        "{% raw %} SELECT {{ x }}",
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(TrickleError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


def test_many_statements() -> None:
    assert len(split("SELECT 1;" * 10_000)) == 10_000
