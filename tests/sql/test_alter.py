"""ALTER TABLE."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, ParseError, TrickleError, UnsupportedStatement
from trickle.sql import (
    AddColumns,
    AlterAction,
    AlterColumnType,
    AlterTable,
    ColumnDef,
    DropColumns,
    RenameColumn,
    RenameTable,
    SetProperties,
    parse,
)

A = ColumnDef("a", "INT")


@pytest.mark.parametrize(
    "text, action",
    [
        ("ADD COLUMN a INT", AddColumns((A,))),
        ("ADD COLUMN a INT, b MAP<INT, INT>", AddColumns((A, ColumnDef("b", "MAP<INT, INT>")))),
        (
            "ADD COLUMNS (a INT, b STRING NOT NULL COMMENT 'x')",
            AddColumns((A, ColumnDef("b", "STRING", nullable=False, comment="x"))),
        ),
        ("DROP COLUMN a", DropColumns(("a",))),
        ("DROP COLUMN IF EXISTS a, b", DropColumns(("a", "b"), if_exists=True)),
        ("DROP COLUMNS (a, b)", DropColumns(("a", "b"))),
        ("RENAME COLUMN a TO b", RenameColumn("a", "b")),
        ("RENAME TO u", RenameTable(TableName.of(["s", "u"]))),
        ("RENAME TO x.u", RenameTable(TableName.of(["x", "u"]))),
        ("ALTER COLUMN a TYPE DECIMAL(20, 2)", AlterColumnType("a", "DECIMAL(20, 2)")),
        ("CHANGE COLUMN a TYPE BIGINT", AlterColumnType("a", "BIGINT")),
        ("ALTER a SET DATA TYPE BIGINT", AlterColumnType("a", "BIGINT")),
        ("SET TBLPROPERTIES ('a.b' = 'c')", SetProperties({"a.b": "c"})),
    ],
)
def test_actions(text: str, action: AlterAction) -> None:
    assert parse(f"ALTER TABLE s.t {text}") == (AlterTable(TableName.of(["s", "t"]), action),)


@pytest.mark.parametrize(
    "text, named",
    [
        ("ADD CONSTRAINT c CHECK (a > 1)", "ADD CONSTRAINT"),
        ("ADD PARTITION (a = 1)", "ADD PARTITION"),
        ("ADD COLUMN a INT FIRST", "FIRST"),
        ("ADD COLUMN a INT AFTER b", "AFTER"),
        ("ADD COLUMN a INT DEFAULT 1", "DEFAULT"),
        ("ADD COLUMN a INT PRIMARY KEY", "PRIMARY KEY"),
        ("ADD COLUMNS (a INT, PRIMARY KEY (a))", "PRIMARY KEY"),
        ("ADD COLUMN a.b INT", "a.b"),
        ("DROP COLUMN a.b", "a.b"),
        ("ALTER COLUMN a SET NOT NULL", "change of the column 'a'"),
        ("ALTER COLUMN a COMMENT 'x'", "change of the column 'a'"),
        ("UNSET TBLPROPERTIES ('a')", "UNSET TBLPROPERTIES"),
        ("SET LOCATION 'x'", "SET LOCATION"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_with_a_hint(text: str, named: str) -> None:
    with pytest.raises(UnsupportedStatement, match=named) as caught:
        parse(f"ALTER TABLE t {text}")
    assert caught.value.hint


@pytest.mark.parametrize(
    "text, error",
    [
        ("ALTER TABLE t", ParseError),
        ("ALTER TABLE t ADD COLUMN a", ParseError),
        ("ALTER TABLE t DROP COLUMN", ParseError),
        ("ALTER TABLE t RENAME COLUMN a b", ParseError),
        ("ALTER TABLE t ADD COLUMNS (a INT, A INT)", InvalidName),
        ("ALTER TABLE t ADD COLUMN a INT, A INT", InvalidName),
        ("ALTER TABLE t RENAME COLUMN a TO `b c`", InvalidName),
        ("ALTER TABLE t RENAME TO trickle.u", InvalidName),
        ("ALTER TABLE trickle.t RENAME TO u", InvalidName),
        ("ALTER VIEW v AS SELECT 1", UnsupportedStatement),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError]) -> None:
    with pytest.raises(error):
        parse(text)
