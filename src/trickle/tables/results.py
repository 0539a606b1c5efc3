"""What a statement that is not a query returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """Rows that come from the catalog or the log, without Spark."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def __iter__(self) -> Iterator[dict[str, object]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Changed:
    """What DML did to a table. An update counts as one deletion and one insertion."""

    table: str
    rows_inserted: int
    rows_deleted: int
    version: int


@dataclass(frozen=True)
class Done:
    """What DDL did, in words."""

    message: str
