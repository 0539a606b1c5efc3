"""SQL text to statements, with table references found and bindable.

The user's text is never written anew: sqlglot parses and finds, and table references are replaced where they stand.
"""

from __future__ import annotations

from trickle.sql.parse import parse
from trickle.sql.query import query
from trickle.sql.split import Piece, split
from trickle.sql.statements import (
    AddColumns,
    AlterAction,
    AlterColumnType,
    AlterStreamTable,
    AlterTable,
    Assignment,
    Call,
    ColumnDef,
    CreateStreamTable,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    DropColumns,
    DropStreamTable,
    Explain,
    Insert,
    Merge,
    MergeClause,
    RefreshStreamTable,
    RenameColumn,
    RenameTable,
    Select,
    SetOption,
    SetProperties,
    ShowTables,
    Statement,
    Truncate,
    Update,
)
from trickle.sql.text import Cut, Query, SqlText, TableRef

__all__ = [
    "AddColumns",
    "AlterAction",
    "AlterColumnType",
    "AlterStreamTable",
    "AlterTable",
    "Assignment",
    "Call",
    "ColumnDef",
    "CreateStreamTable",
    "CreateTable",
    "CreateView",
    "Cut",
    "Delete",
    "Describe",
    "Drop",
    "DropColumns",
    "DropStreamTable",
    "Explain",
    "Insert",
    "Merge",
    "MergeClause",
    "Piece",
    "Query",
    "RefreshStreamTable",
    "RenameColumn",
    "RenameTable",
    "Select",
    "SetOption",
    "SetProperties",
    "ShowTables",
    "SqlText",
    "Statement",
    "TableRef",
    "Truncate",
    "Update",
    "parse",
    "query",
    "split",
]
