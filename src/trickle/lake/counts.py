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
    added, removed = _sum(_rows(found.inserted)), _sum(_rows(found.deleted))
    shown, hidden = _revised(found)
    fed_in, fed_out = _fed(found)
    return ChangeCount(
        inserted=_sum([added, shown, fed_in, *(kept.inserted for kept in found.exact)]),
        deleted=_sum([removed, hidden, fed_out, *(kept.deleted for kept in found.exact)]),
        exact=not (found.inserted and found.deleted) and not found.feeds and _only_hides(found),
    )


def _revised(found: Difference) -> tuple[int, int]:
    """Rows that came back and rows that went by new deletion vectors, if each vector grew or shrank."""
    grown = [after.deleted - before.deleted for before, after in found.revised]
    return -sum(n for n in grown if n < 0), sum(n for n in grown if n > 0)


def _only_hides(found: Difference) -> bool:
    """Whether cardinalities tell the rows: between two vectors, rows may have come back while others went."""
    return all(before.deletion_vector is None or after.deletion_vector is None for before, after in found.revised)


def _fed(found: Difference) -> tuple[int | None, int | None]:
    """A change data feed has no statistics; the rewritten files bound it."""
    return (
        _sum(_rows(file for commit in found.feeds for file in commit.adds)),
        _sum(_rows(file for commit in found.feeds for file in commit.removes)),
    )


def _rows(files: Iterable[DataFile]) -> list[int | None]:
    return [file.live_rows for file in files]


def _sum(counts: Iterable[int | None]) -> int | None:
    """Unknown is never zero."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
