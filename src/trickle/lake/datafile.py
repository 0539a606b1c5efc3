"""A data file as the log of a Delta table describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DataFile:
    """A data file as the log describes it. Identity is the path and the deletion vector."""

    path: str
    """As the log spells it: relative to the table (URL-quoted) or absolute."""
    size: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    rows: int | None = None
    """Rows in the file before the deletion vector; None when the statistics do not say."""
    minimum: Mapping[str, object] = field(default_factory=dict)
    maximum: Mapping[str, object] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    deletion_vector: str | None = None
    """An id of the deletion vector, None when there is none."""
    deleted: int = 0
    """Rows that the deletion vector hides."""

    @property
    def identity(self) -> tuple[str, str | None]:
        """What makes two entries of the log the same logical file."""
        return self.path, self.deletion_vector

    @property
    def live_rows(self) -> int | None:
        """Rows that a reader sees; None when the statistics do not say."""
        return None if self.rows is None else self.rows - self.deleted
