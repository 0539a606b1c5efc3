"""How many rows changed between two versions, from the log alone: no data is read, no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trickle.lake.datafile import DataFile
from trickle.lake.difference import Difference, between
from trickle.lake.location import Location


@dataclass(frozen=True)
class ChangeCount:
    """Changed rows. Not exact means at most so many: unchanged rows of rewritten files are counted on both sides."""

    inserted: int | None
    """None when a file's statistics do not say."""
    deleted: int | None
    exact: bool


def count_changes(location: Location, old: int, new: int) -> ChangeCount:
    """The number of rows that the versions (old, new] inserted and deleted."""
    found = between(location, old, new)
    shown, hidden = _revised(found)
    rows = [*found.whole, *found.rewritten]
    return ChangeCount(
        inserted=_sum([*_rows(rows, +1), shown, *(kept.inserted for kept in found.exact)]),
        deleted=_sum([*_rows(rows, -1), hidden, *(kept.deleted for kept in found.exact)]),
        exact=not found.feed and not _may_cancel(found),
    )


def _may_cancel(found: Difference) -> bool:
    """Whether a row can be among both the inserted and the deleted ones, or be counted wrongly.

    Between two deletion vectors rows may have come back while as many went.
    """
    signs = {weight > 0 for _, weight in found.whole}
    return len(signs) > 1 or any(before.deletion_vector and after.deletion_vector for before, after in found.revised)


def _revised(found: Difference) -> tuple[int, int]:
    """Rows that came back and rows that went by new deletion vectors, if each vector grew or shrank."""
    grown = [after.deleted - before.deleted for before, after in found.revised]
    return -sum(n for n in grown if n < 0), sum(n for n in grown if n > 0)


def _rows(files: Iterable[tuple[DataFile, int]], sign: int) -> list[int | None]:
    chosen = [(file.live_rows, abs(weight)) for file, weight in files if weight * sign > 0]
    return [None if rows is None else rows * times for rows, times in chosen]


def _sum(counts: Iterable[int | None]) -> int | None:
    """Unknown is never zero."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
