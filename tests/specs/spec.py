"""Spec files: cases in the language of the problem.

    # What the file is about.

    ## what the case shows
    sql:
        SELECT id FROM orders WHERE total > 9
    table orders (id bigint, total bigint):
        = [1, 10]
        - [2, 20]
        + [2, 5]

A row of a table is JSON: ``=`` is there before and after, ``-`` only before, ``+`` only after. What follows is golden,
and written by ``pytest tests/specs --rewrite-specs``: either ``refused`` (the error), or ``tree``, ``change`` (the
change of the result), ``delta plan`` and ``delta sql``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from trickle.algebra.names import TableName
from trickle.sql.build import Schemas

_INDENT = "    "
_TABLE = re.compile(r"table (\S+) \((.*)\)")
_COLUMN = re.compile(r"([^\s,]+) ((?:[^,(<]|\([^)]*\)|<[^>]*>)+)(?:, |$)")
_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}


@dataclass(frozen=True)
class Table:
    """A table of a case: its columns with Spark's types, and its rows with their signs."""

    name: str
    columns: Mapping[str, str]
    rows: tuple[tuple[str, list[Any]], ...]

    def state(self, sign: str) -> pa.Table:
        """The rows before (``-``) or after (``+``)."""
        rows = [row for mark, row in self.rows if mark in ("=", sign)]
        arrays = [
            pa.array([row[place] for row in rows], _arrow(kind)) if kind != "date" else _dates(rows, place)
            for place, kind in enumerate(self.columns.values())
        ]
        return pa.table(dict(zip(self.columns, arrays, strict=True)))


@dataclass
class Case:
    name: str
    sections: dict[str, list[str]] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        return "\n".join(self.sections["sql"])

    @property
    def tables(self) -> list[Table]:
        return [_table(head, body) for head, body in self.sections.items() if head.startswith("table ")]

    @property
    def schemas(self) -> Schemas:
        return {TableName.of(table.name.split(".")): table.columns for table in self.tables}

    @property
    def golden(self) -> dict[str, list[str]]:
        return {head: body for head, body in self.sections.items() if head != "sql" and not head.startswith("table ")}

    def text(self) -> str:
        lines = [f"## {self.name}"]
        for head, body in self.sections.items():
            lines += [f"{head}:", *(_INDENT + line if line else "" for line in body)]
        return "\n".join(lines) + "\n"


@dataclass
class Spec:
    head: str
    cases: list[Case]

    def text(self) -> str:
        return "\n".join([self.head, *(case.text() for case in self.cases)])


def read(path: Path) -> Spec:
    """The cases of a file."""
    head: list[str] = []
    cases: list[Case] = []
    body: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            cases.append(Case(line[3:].strip()))
        elif not cases:
            head.append(line)
        elif line.startswith(_INDENT):
            body.append(line.removeprefix(_INDENT))
        elif line.endswith(":"):
            body = cases[-1].sections.setdefault(line[:-1], [])
        elif line:
            raise ValueError(f"{path.name}: neither a heading nor indented: {line}")
    return Spec("\n".join(head).rstrip() + "\n", cases)


def _table(head: str, body: list[str]) -> Table:
    found = _TABLE.fullmatch(head)
    if found is None:
        raise ValueError(f"no table: {head}")
    columns = dict(_COLUMN.findall(found[2]))
    rows = tuple((line[0], json.loads(line[1:])) for line in body)
    if bad := [row for row in rows if row[0] not in "=+-" or len(row[1]) != len(columns)]:
        raise ValueError(f"no row of {head}: {bad[0]}")
    return Table(found[1], columns, rows)


def _arrow(kind: str) -> pa.DataType:
    if kind.startswith("array<"):
        return pa.list_(_arrow(kind[len("array<") : -1]))
    return _TYPES[kind]


def _dates(rows: list[list[Any]], place: int) -> pa.Array:
    return pa.array([row[place] for row in rows], pa.string()).cast(pa.date32())
