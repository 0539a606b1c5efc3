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
tried too, each time after twice as many refreshes as before. What that may cost is bounded: something near the way that
is chosen, or a share of what was spent since the last time. The share is larger where a single refresh tells, which was
perhaps a cold one, and all of it where only other sizes do: that is a guess.

Full refreshes may leave inner tables behind, which the next refresh by changes brings up first. That is paid once, and
by whatever comes later saved again: so it is waited with until full refreshes have cost as much more than refreshes by
changes would have.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

REMEMBERED = 80
"""Refreshes of the past that are looked at, of both ways together."""
_KNOWN = 20
"""Refreshes by changes that tell about their sizes."""
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
_FEW_ROWS = 100_000
"""Rows of sources up to which a full refresh takes what it costs to begin."""
_GUESSED = 3.0
"""How many times slower refreshes by changes may be that are tried, as other sizes tell."""
_BY_CHANGES = 1.5
"""The same as refreshes of the size tell."""
_COLD = 1.5
"""The same of full refreshes, of which only the first fill is known: it may have been that much slower."""
_CLOSE = 1.25
"""The same of full refreshes, when more is known of them."""
_SHARE, _SHARE_ONCE = 8, 2
"""Of what was spent since the last try, the part that the next one may cost; and when there was only one refresh."""
_MOST_DOUBLED = 6
"""How often the distance between tries is doubled: more refreshes than that are not remembered."""
_UNKNOWN = 4
"""Full refreshes until refreshes by changes are tried of which nothing at all is known."""


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


def estimate(
    samples: Sequence[Sample],
    changed_rows: int | None,
    source_rows: int,
    max_ratio: float,
    *,
    is_behind: bool = False,
) -> Estimate:
    """Choose for a change of so many rows (None when only reading would tell) in sources of so many.

    ``is_behind`` says that inner tables have to be brought up before a refresh by changes.
    """
    if changed_rows is None:
        return Estimate(False, "CHANGES_UNCOUNTED", "the number of changed rows is not known before they are read")
    full, changes = in_full(samples, source_rows), by_changes(samples, changed_rows)
    if full is not None and changes is not None:
        debt, lost = _catching_up(samples) if is_behind else (0.0, 0.0)
        # Of a size that was never seen there is only a guess: better than to act on it is to see.
        is_seen = any(sample.by_changes and _is_like(sample, changed_rows) for sample in samples)
        words = f"{changes:,.0f} ms by changes and {full:,.0f} ms in full are expected"
        if is_seen and changes <= full < changes + debt and lost + full - changes < debt:
            words += f"; inner tables would take {debt:,.0f} ms to catch up"
            return Estimate(True, "COST_MODEL", words, full, changes)
        is_full_cheaper = full < changes
        if is_full_cheaper:
            is_tried = _are_changes_tried(samples, changed_rows, changes + debt, full)
        else:
            is_tried = is_seen and _is_full_tried(samples, full, changes)
        tried = "; the other way, to see how long it takes now" if is_tried else ""
        return Estimate(is_full_cheaper is not is_tried, "COST_MODEL", words + tried, full, changes)
    ratio = changed_rows / max(source_rows, 1)
    words = f"{changed_rows:,} of {source_rows:,} rows changed, {ratio:.1%}; the threshold is {max_ratio:.1%}"
    is_over = ratio > max_ratio
    if is_over and ratio < _GUESSED * max_ratio and _is_anything_tried(samples, changed_rows):
        return Estimate(False, "CHANGE_RATIO", f"{words}; by changes, to see how long that takes", full, changes)
    return Estimate(is_over, "CHANGE_RATIO", words, full, changes)


def _are_changes_tried(samples: Sequence[Sample], changed_rows: int, changes: float, full: float) -> bool:
    """Whether to go by changes though that is expected to be slower. Refreshes of about as many rows count."""
    seen = [sample.by_changes for sample in samples if _is_like(sample, changed_rows)]
    waited = _waited(seen)
    if not any(seen):
        return changes < max(_GUESSED, waited) * full
    spent = waited / (_SHARE if sum(seen) >= _ENOUGH_NEAR else _SHARE_ONCE)
    return waited >= _distance(_tries(seen)) and changes < max(_BY_CHANGES, spent) * full


def _is_full_tried(samples: Sequence[Sample], full: float, changes: float) -> bool:
    """Whether to refresh in full though that is expected to be slower; at first when refreshes by changes are warm."""
    seen = [not sample.by_changes for sample in samples]
    is_first = sum(seen) == 1
    # The first fill was no try.
    distance = _LATEST if is_first else _distance(_tries(seen) - 1)
    spent = _waited(seen) / _SHARE
    return _waited(seen) >= distance and full < max(_COLD if is_first else _CLOSE, spent) * changes


def _is_anything_tried(samples: Sequence[Sample], changed_rows: int) -> bool:
    """Whether to go by changes though nothing tells how long that takes for so many rows."""
    seen = [sample.by_changes for sample in samples if _is_like(sample, changed_rows)]
    return _waited(seen) >= _UNKNOWN * _distance(_tries(seen))


def _waited(seen: Sequence[bool]) -> int:
    """How many refreshes ago one way was taken; all of them if it never was."""
    return next((place for place, one in enumerate(seen) if one), len(seen))


def _tries(seen: Sequence[bool]) -> int:
    """How often one way was begun to be taken: however often that was repeated, it is one try."""
    return sum(one and not before for one, before in pairwise([*seen, False]))


def _distance(tries: int) -> int:
    """How many refreshes one way waits that was tried so often."""
    return 1 << min(tries, _MOST_DOUBLED)


def in_full(samples: Sequence[Sample], source_rows: int) -> float | None:
    """The expected milliseconds of a full refresh."""
    known = [s for s in samples if not s.by_changes][:_LATEST]
    if not known:
        return None
    return min(s.duration_ms * max(source_rows, _FEW_ROWS) / max(s.source_rows, _FEW_ROWS) for s in known)


def by_changes(samples: Sequence[Sample], changed_rows: int) -> float | None:
    """The expected milliseconds of a refresh by changes; None beyond what the past tells."""
    known = [s for s in samples if s.by_changes][:_KNOWN]
    near = [s for s in known if _is_like(s, changed_rows)][:_LATEST]
    if len(near) >= _ENOUGH_NEAR:
        return min(s.duration_ms for s in near)
    if len(known) < _ENOUGH or changed_rows > _REACH * max(s.changed_rows for s in known):
        return None
    return _between(_sizes(known), max(changed_rows, 1))


def _catching_up(samples: Sequence[Sample]) -> tuple[float, float]:
    """What it takes to bring inner tables up after the latest full refreshes, and how much longer these took than
    refreshes by changes would have.
    """
    sizes = _sizes([sample for sample in samples if sample.by_changes][:_KNOWN])
    since = list(takewhile(lambda sample: not sample.by_changes, samples))
    if not sizes or not since:
        return 0.0, 0.0
    lost = sum(max(0.0, one.duration_ms - _between(sizes, max(one.changed_rows, 1))) for one in since)
    return _between(sizes, max(sum(one.changed_rows for one in since), 1)), lost


def _is_like(sample: Sample, changed_rows: int) -> bool:
    """Whether it had about as many changed rows."""
    seen, wanted = max(sample.changed_rows, 1), max(changed_rows, 1)
    return seen <= _NEAR * wanted and wanted <= _NEAR * seen


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
