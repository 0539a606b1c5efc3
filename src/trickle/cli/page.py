"""What a command has to show: rows, or one record with a sentence about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trickle.cli.values import to_json


@dataclass(frozen=True)
class Page:
    """Rows under their columns. ``more`` says that the table goes on after them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: bool = False

    def as_json(self) -> object:
        """An array of objects."""
        keys = _distinct(self.columns)
        return [{key: to_json(value) for key, value in zip(keys, row, strict=True)} for row in self.rows]


@dataclass(frozen=True)
class Record:
    """One object, and the same as a sentence for people."""

    values: Mapping[str, object]
    sentence: str

    def as_json(self) -> object:
        """An object."""
        return to_json(self.values)


Shown = Page | Record


def _distinct(columns: tuple[str, ...]) -> list[str]:
    """Keys for columns: a query may give several the same name, an object may not."""
    seen: dict[str, int] = {}
    keys = []
    for column in columns:
        seen[column] = seen.get(column, 0) + 1
        keys.append(column if seen[column] == 1 else f"{column}_{seen[column]}")
    return keys
