"""What a text can ask for: one frozen class per statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trickle.algebra.names import TableName
from trickle.sql.text import Query, SqlText


@dataclass(frozen=True)
class Select:
    query: Query


@dataclass(frozen=True)
class Explain:
    query: Query


@dataclass(frozen=True)
class ColumnDef:
    """A column as declared; ``type`` is the text of its type. Columns of the primary key are never nullable."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True)
class CreateTable:
    name: TableName
    columns: tuple[ColumnDef, ...] = ()
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    query: Query | None = None


@dataclass(frozen=True)
class CreateView:
    name: TableName
    query: Query
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class CreateStreamTable:
    name: TableName
    query: Query
    options: Mapping[str, object] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterStreamTable:
    name: TableName
    action: Literal["set", "resume", "suspend"]
    options: Mapping[str, object] = field(default_factory=dict)
    query: Query | None = None


@dataclass(frozen=True)
class DropStreamTable:
    name: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RefreshStreamTable:
    name: TableName
    force: bool = False


@dataclass(frozen=True)
class Insert:
    name: TableName
    query: Query
    columns: tuple[str, ...] | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class Assignment:
    """``column = value``, in UPDATE and MERGE."""

    column: str
    value: SqlText


@dataclass(frozen=True)
class Update:
    name: TableName
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    where: SqlText | None = None


@dataclass(frozen=True)
class Delete:
    name: TableName
    alias: str | None = None
    where: SqlText | None = None


@dataclass(frozen=True)
class MergeClause:
    """One WHEN of a MERGE. With ``star`` the assignments are all columns of the source by name."""

    when: Literal["matched", "not_matched", "not_matched_by_source"]
    action: Literal["update", "delete", "insert"]
    condition: SqlText | None = None
    star: bool = False
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class Merge:
    """``source`` can stand after USING and is without its alias, which is always given by ``source_alias``."""

    name: TableName
    source: SqlText
    source_alias: str
    on: SqlText
    clauses: tuple[MergeClause, ...]
    alias: str | None = None


@dataclass(frozen=True)
class Truncate:
    name: TableName


@dataclass(frozen=True)
class Drop:
    kind: Literal["table", "view"]
    name: TableName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AddColumns:
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True)
class DropColumns:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    old: str
    new: str


@dataclass(frozen=True)
class RenameTable:
    new: TableName


@dataclass(frozen=True)
class AlterColumnType:
    column: str
    type: str


@dataclass(frozen=True)
class SetProperties:
    properties: Mapping[str, str]


AlterAction = AddColumns | DropColumns | RenameColumn | RenameTable | AlterColumnType | SetProperties


@dataclass(frozen=True)
class AlterTable:
    name: TableName
    action: AlterAction


@dataclass(frozen=True)
class Describe:
    name: TableName
    extended: bool = False


@dataclass(frozen=True)
class ShowTables:
    schema: str | None = None
    like: str | None = None


@dataclass(frozen=True)
class SetOption:
    """``SET trickle.<name> = value``; ``RESET`` is the value None."""

    name: str
    value: object


@dataclass(frozen=True)
class Call:
    """``CALL trickle.<name>(...)`` with literals as arguments."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


Statement = (
    AlterStreamTable
    | AlterTable
    | Call
    | CreateStreamTable
    | CreateTable
    | CreateView
    | Delete
    | Describe
    | Drop
    | DropStreamTable
    | Explain
    | Insert
    | Merge
    | RefreshStreamTable
    | Select
    | SetOption
    | ShowTables
    | Truncate
    | Update
)
