from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from trickle.errors import InvalidData
from trickle.postgres.connect import Connection
from trickle.postgres.rows import copy_texts, read_columns
from trickle.postgres.tables import describe
from trickle.postgres.types import PgType, mapped, read_texts

NUMERIC = PgType(1700, "numeric")


def numeric(precision: int, scale: int) -> PgType:
    return PgType(1700, "numeric", ((precision << 16) | (scale & 0x7FF)) + 4)


LONG = "0.12345678901234567890123456789012345678"
WIDE = "-12345678901234567890.123456789012345678"

CASES: list[tuple[str, str, str, Any]] = [
    ("boolean", "true", "boolean", True),
    ("smallint", "-32768", "smallint", -32768),
    ("integer", "2147483647", "int", 2147483647),
    ("bigint", "-9223372036854775808", "bigint", -(2**63)),
    ("oid", "4294967295", "bigint", 4294967295),
    ("real", "1.1", "float", 1.100000023841858),
    ("double precision", "'-Infinity'", "double", float("-inf")),
    ("numeric(12,2)", "1234567890.12", "decimal(12,2)", Decimal("1234567890.12")),
    ("numeric(38,38)", LONG, "decimal(38,38)", Decimal(LONG)),
    ("numeric(5,-2)", "12345", "decimal(7,0)", Decimal(12300)),
    ("numeric(2,4)", "0.0012", "decimal(4,4)", Decimal("0.0012")),
    ("numeric", WIDE, "decimal(38,18)", Decimal(WIDE)),
    ("numeric(50,10)", "1.5", "decimal(38,10)", Decimal("1.5000000000")),
    ("text", "E'a\\nb,\"c\"\\\\.'", "string", 'a\nb,"c"\\.'),
    ("text", "''", "string", ""),
    ("varchar(3)", "'abc'", "string", "abc"),
    ("char(4)", "'ab'", "string", "ab  "),
    ("name", "'n'", "string", "n"),
    ('"char"', "'c'", "string", "c"),
    ("bytea", "'\\x00ff10'", "binary", b"\x00\xff\x10"),
    ("date", "'0001-01-01'", "date", date(1, 1, 1)),
    ("timestamp", "'9999-12-31 23:59:59.999999'", "timestamp_ntz", datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", "'2024-06-01 12:00:00.5+05:30'", "timestamp", datetime(2024, 6, 1, 6, 30, 0, 500000, tzinfo=UTC)),
    ("time", "'24:00:00'", "string", "24:00:00"),
    ("timetz", "'01:02:03+04'", "string", "01:02:03+04"),
    ("interval", "'1 year 2 days 03:04:05'", "string", "P1Y2DT3H4M5S"),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", """'{"a": [1,  2]}'""", "string", '{"a": [1,  2]}'),
    ("jsonb", """'{"b":1,"a":2}'""", "string", '{"a": 2, "b": 1}'),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("cidr", "'10.0.0.0/8'", "string", "10.0.0.0/8"),
    ("macaddr", "'08:00:2b:01:02:03'", "string", "08:00:2b:01:02:03"),
    ("int4range", "'[1,5]'", "string", "[1,6)"),
    ("tstzrange", "'[2024-01-01 00:00+01,)'", "string", '["2023-12-31 23:00:00+00",)'),
    ("tsvector", "'b a'", "string", "'a' 'b'"),
    ("bit(3)", "'101'", "string", "101"),
    ("money", "'1234.5'", "string", "$1,234.50"),
    ("point", "'(1,2)'", "string", "(1,2)"),
    ("regclass", "'pg_class'", "string", "pg_class"),
    ("mood", "'happy'", "string", "happy"),
    ("price", "12.5", "decimal(10,2)", Decimal("12.50")),
    ("pair", "ROW(1, 'x y')", "string", '(1,"x y")'),
    ("integer[]", "'{1,NULL,3}'", "array<int>", [1, None, 3]),
    ("integer[]", "'{}'", "array<int>", []),
    ("integer[]", "'[0:1]={7,8}'", "array<int>", [7, 8]),
    ("text[]", """'{"a,b","NULL",NULL,"q\\"\\\\","{x}"}'""", "array<string>", ["a,b", "NULL", None, 'q"\\', "{x}"]),
    ("numeric(6,1)[]", "'{1.5}'", "array<decimal(6,1)>", [Decimal("1.5")]),
    ("box[]", "'{(1,1),(0,0);(3,3),(2,2)}'", "array<string>", ["(1,1),(0,0)", "(3,3),(2,2)"]),
    ("mood[]", "'{happy}'", "array<string>", ["happy"]),
    ("price[]", "'{1.5}'", "array<decimal(10,2)>", [Decimal("1.50")]),
    ("bool[]", "'{t,f}'", "array<boolean>", [True, False]),
    ("timestamptz[]", """'{"2024-01-01 00:00+00"}'""", "array<timestamp>", [datetime(2024, 1, 1, tzinfo=UTC)]),
    ("int2vector", "'1 2'", "string", "1 2"),
]  # fmt: skip


def test_each_type_comes_as_documented(connection: Connection) -> None:
    connection.execute("CREATE TYPE public.mood AS ENUM ('sad', 'happy')")
    connection.execute("CREATE DOMAIN public.price AS numeric(10,2) CHECK (VALUE >= 0)")
    connection.execute("CREATE TYPE public.pair AS (a int, b text)")
    connection.execute("SET search_path = public, pg_catalog")
    names = [f"c{number}" for number in range(len(CASES))]
    declared = ", ".join(f"{name} {kind}" for name, (kind, *_) in zip(names, CASES, strict=True))
    connection.execute(f"CREATE TABLE public.t ({declared})")
    connection.execute("INSERT INTO public.t VALUES (" + ", ".join(literal for _, literal, *_ in CASES) + ")")
    connection.execute("INSERT INTO public.t DEFAULT VALUES")
    connection.execute("SET search_path = pg_catalog, pg_temp")
    table = describe(connection, "public", "t")
    assert [column.mapped.spark for column in table.columns] == [spark for *_, spark, _ in CASES]

    (texts,) = copy_texts(connection, sql.SQL("SELECT * FROM public.t"), names)
    found = read_columns(texts, table.columns, table.shown).to_pylist()
    assert list(found[0].values()) == [value for *_, value in CASES]
    assert [value for value in found[1].values() if value is not None] == []


@pytest.mark.parametrize(
    "kind, literal",
    [
        ("date", "'infinity'"),
        ("date", "'0044-03-15 BC'"),
        ("date", "'10000-01-01'"),
        ("timestamp", "'-infinity'"),
        ("timestamptz", "'infinity'"),
        ("timestamptz", "'10000-01-01 00:00+00'"),
        ("numeric", "'NaN'"),
        ("numeric", "'Infinity'"),
        ("numeric", "12345678901234567890123456789012345678"),
        ("numeric", "1e80"),
        ("numeric", "0.0000000000000000001"),
        ("integer[]", "'{{1,2},{3,4}}'"),
        ("date[]", "'{infinity}'"),
    ],
)
def test_what_the_lake_cannot_hold_is_named(connection: Connection, kind: str, literal: str) -> None:
    connection.execute(f"CREATE TABLE public.t (id int, v {kind})")
    connection.execute(
        f"INSERT INTO public.t SELECT g, CASE WHEN g = 7 THEN {literal}::{kind} END FROM generate_series(1, 9) g"
    )
    table = describe(connection, "public", "t")
    (texts,) = copy_texts(connection, sql.SQL("SELECT * FROM public.t"), ["id", "v"])
    with pytest.raises(InvalidData, match="column 'v' of public") as caught:
        read_columns(texts, table.columns, table.shown)
    expected = connection.execute("SELECT v::text FROM public.t WHERE id = 7").fetchone()
    assert expected is not None
    assert expected[0][:40] in str(caught.value.detail)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=18, min_value=-(10**22), max_value=10**22)))
def test_decimals_are_exact_or_refused(values: list[Decimal]) -> None:
    texts = pa.array([f"{value:f}" for value in values], pa.string())
    fits = all(abs(value) < 10**20 for value in values)
    if fits:
        assert read_texts(texts, NUMERIC, "v", "t").to_pylist() == values
    else:
        with pytest.raises(InvalidData):
            read_texts(texts, NUMERIC, "v", "t")


@given(st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p))), st.data())
def test_declared_decimals_are_read_whole(shape: tuple[int, int], data: st.DataObject) -> None:
    precision, scale = shape
    whole = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    digits = f"{abs(whole):0{scale + 1}d}"
    text = ("-" if whole < 0 else "") + (digits[:-scale] + "." + digits[-scale:] if scale else digits)
    kind = numeric(precision, scale)
    assert mapped(kind).spark == f"decimal({precision},{scale})"
    (found,) = read_texts(pa.array([text]), kind, "v", "t").to_pylist()
    assert f"{found:f}" == text
