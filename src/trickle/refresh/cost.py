"""Whether a refresh by changes or in full is expected to be cheaper (pure).

Two estimates are made from the latest refreshes of the same stream table:

    in full      the quickest of the latest, scaled by how much the sources have grown
    by changes   the quickest of the latest that had about as many changed rows; where there are none, what the sizes
                 that were seen tell: between two of them, and beyond, the time grows by a power of the rows

The quickest, as what else happens on a machine, and plans that are run for the first time, can only make a refresh
slower. A power between 0 and 1, as a refresh by changes costs what it costs to begin, and then more by the row: a
straight line through small changes makes large ones ten times as slow as they are. Both estimates are trusted only near
what was seen: ten rows say nothing about a million. Until then, or beyond that, a fixed share of changed rows decides.

What was slow once need not stay so, and while one way is chosen nothing is learned about the other. So the other way is
tried too where it may well be the better one, each time after twice as many refreshes as before. What other sizes tell
about one that was never seen is a guess: it is tried at once, or after as many full refreshes as it is expected to be
times slower, and what may be lost by that is what they took.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

REMEMBERED = 20
_LATEST = 3
"""Refreshes of which the quickest counts."""
_ENOUGH_NEAR = 2
_ENOUGH = 3
"""Refreshes that tell about other sizes."""
_NEAR = 2.0
"""How many times more or less rows are about as many."""
_REACH = 16.0
"""How many times more rows than ever seen are still told about."""
_POWER = 0.5
"""By which the time grows with the rows when only one size was seen."""
_HOPELESS = 3.0
"""How many times slower refreshes by changes must be expected to be that are tried no more."""
_COLD = 1.5
"""The same of full refreshes, of which only the first fill is known: it may have been that much slower."""
_CLOSE = 1.25
"""The same of full refreshes, when more is known of them."""


@dataclass(frozen=True)
class Sample:
    """One refresh of the past."""

    by_changes: bool
    duration_ms: float
    changed_rows: int
    source_rows: int


@dataclass(frozen=True)
class Estimate:
    """The choice, and what it rests on. The milliseconds are None where nothing is known."""

    in_full: bool
    code: str
    reason: str
    full_ms: float | None = None
    changes_ms: float | None = None


def estimate(samples: Sequence[Sample], changed_rows: int | None, source_rows: int, max_ratio: float) -> Estimate:
    """Choose for a change of so many rows (None when only reading would tell) in sources of so many."""
    if changed_rows is None:
        return Estimate(False, "CHANGES_UNCOUNTED", "the number of changed rows is not known before they are read")
    full, changes = in_full(samples, source_rows), by_changes(samples, changed_rows)
    if full is not None and changes is not None:
        is_full_cheaper = full < changes
        if is_full_cheaper:
            is_tried = _are_changes_tried(samples, changed_rows, changes, full)
        else:
            is_tried = _is_full_tried(samples, full, changes)
        tried = "; the other way, to see how long it takes now" if is_tried else ""
        words = f"{changes:,.0f} ms by changes and {full:,.0f} ms in full are expected{tried}"
        return Estimate(is_full_cheaper is not is_tried, "COST_MODEL", words, full, changes)
    ratio = changed_rows / max(source_rows, 1)
    over = ratio > max_ratio
    words = f"{changed_rows:,} of {source_rows:,} rows changed, {ratio:.1%}; the threshold is {max_ratio:.1%}"
    return Estimate(over, "CHANGE_RATIO", words, full, changes)


def _are_changes_tried(samples: Sequence[Sample], changed_rows: int, changes: float, full: float) -> bool:
    """Whether to go by changes though that is expected to be slower: at once or after some full refreshes where nothing
    of the size was seen; then after 2 others, 4, 8, 16, ...
    """
    near = [place for place, sample in enumerate(samples) if _is_like(sample, changed_rows)]
    if not near:
        waited = next((place for place, sample in enumerate(samples) if sample.by_changes), len(samples))
        return changes < max(_HOPELESS, waited) * full
    return changes < _HOPELESS * full and near[0] >= 2 ** len(near)


def _is_full_tried(samples: Sequence[Sample], full: float, changes: float) -> bool:
    """Whether to refresh in full though that is expected to be slower: when only the first fill is known, which was a
    cold one, as soon as the refreshes by changes are not cold any more; then after 2 others, 4, 8, ...
    """
    seen = [place for place, sample in enumerate(samples) if not sample.by_changes]
    if len(seen) == 1:
        return full < _COLD * changes and seen[0] >= _LATEST
    return full < _CLOSE * changes and seen[0] >= 2 ** (len(seen) - 1)


def in_full(samples: Sequence[Sample], source_rows: int) -> float | None:
    """The expected milliseconds of a full refresh."""
    known = [s for s in samples if not s.by_changes][:_LATEST]
    if not known:
        return None
    return min(s.duration_ms * max(source_rows, 1) / max(s.source_rows, 1) for s in known)


def by_changes(samples: Sequence[Sample], changed_rows: int) -> float | None:
    """The expected milliseconds of a refresh by changes; None beyond what the past tells."""
    known = [s for s in samples if s.by_changes][:REMEMBERED]
    near = [s for s in known if _is_like(s, changed_rows)][:_LATEST]
    if len(near) >= _ENOUGH_NEAR:
        return min(s.duration_ms for s in near)
    if len(known) < _ENOUGH or changed_rows > _REACH * max(s.changed_rows for s in known):
        return None
    return _between(_sizes(known), max(changed_rows, 1))


def _is_like(sample: Sample, changed_rows: int) -> bool:
    """Whether it went by changes, and by about as many."""
    seen, wanted = max(sample.changed_rows, 1), max(changed_rows, 1)
    return sample.by_changes and seen <= _NEAR * wanted and wanted <= _NEAR * seen


def _sizes(known: Sequence[Sample]) -> list[tuple[float, float]]:
    """The sizes of change that were seen, from the smallest, each with the middle one of its latest refreshes: one that
    found nothing to do would make all larger sizes look slow.

    More rows are not expected to be quicker: a size takes at most what a larger one took.
    """
    together: list[list[Sample]] = []
    for sample in sorted(known, key=lambda one: one.changed_rows):
        if together and _is_like(together[-1][0], sample.changed_rows):
            together[-1].append(sample)
        else:
            together.append([sample])
    sizes: list[tuple[float, float]] = []
    for same in reversed(together):
        latest = [one for one in known if one in same][:_LATEST]
        rows = statistics.median_low(max(one.changed_rows, 1) for one in latest)
        ms = max(statistics.median_low(one.duration_ms for one in latest), 1.0)
        sizes.insert(0, (float(rows), min(ms, sizes[0][1]) if sizes else ms))
    return sizes


def _between(sizes: Sequence[tuple[float, float]], rows: int) -> float:
    """What so many rows take, by the two sizes on both sides of them, or the two that are nearest to them."""
    if len(sizes) == 1:
        (seen, ms), power = sizes[0], _POWER
    else:
        pairs = list(pairwise(sizes))
        (less, before), (more, after) = next((pair for pair in pairs if rows <= pair[1][0]), pairs[-1])
        power = min(1.0, math.log(after / before) / math.log(more / less))
        seen, ms = (less, before) if rows <= more else (more, after)
    # Of fewer rows than ever seen, most is what it costs to begin.
    grown: float = ms * (rows / seen) ** power
    return max(grown, min(ms for _, ms in sizes) / 2)
