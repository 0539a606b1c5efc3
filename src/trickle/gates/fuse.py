"""The fuse: stops a refresh whose change is far larger than usual, before bad data spreads.

``should_blow`` is the whole decision. With v the change, split into insertions and deletions:

- mode none: never.
- ceiling (fixed and adaptive): insertions + deletions > ceiling.
- ratio (fixed and adaptive): insertions / rows or deletions / rows > max_ratio, of the rows before the change. An
  update is one of each, so that updating every row is a ratio of 1.
- adaptive: insertions, or deletions, > mean + sensitivity x sigma of their own past. Sigma is at least a tenth of the
  mean of all changes, and at least 1: a table that always changed by the same number does not blow at one more.
- adaptive with too little past: insertions + deletions > cold_start_ceiling.

Every test grows with v. So a count that is never too low decides for nothing when it passes; only when it does not is
the net change counted by reading it. Below a blown fuse nothing is refreshed until somebody resets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from trickle.gates.facts import Facts, FuseFacts, FuseRating, TableFacts, Volume
from trickle.gates.verdict import Verdict, block, proceed, together
from trickle.gates.words import moment, stamp
from trickle.stats.ewma import fading
from trickle.stats.spread import Spread
from trickle.stats.window import rolling

FEWEST_SAMPLES = 5
Which = Literal["ceiling", "ratio", "cold_start", "deletions", "insertions"]


@dataclass(frozen=True)
class Blow:
    """Why a fuse blows."""

    reason: str
    which: Which
    count: int
    """The rows that were too many."""
    computed_threshold: float
    baseline_mean: float | None = None
    baseline_stddev: float | None = None


def baseline_of(rating: FuseRating, values: Sequence[int]) -> Spread | None:
    """What is usual, from past numbers of rows, oldest first; None while there are too few."""
    if len(values) < min(FEWEST_SAMPLES, rating.window_size):
        return None
    return fading(values, rating.window_size) if rating.baseline == "ewma" else rolling(values, rating.window_size)


def should_blow(rating: FuseRating, volume: Volume, samples: Sequence[Volume], rows: int) -> Blow | None:
    """Why the fuse blows at this volume; None when it does not.

    >>> should_blow(FuseRating("fixed", ceiling=50_000), Volume(inserted=0, deleted=85_432), (), 100_000).reason
    'delta of 85432 changed rows exceeds ceiling 50000'
    """
    if rating.mode == "none":
        return None
    return next(_found(rating, volume, samples, rows), None)


def _found(rating: FuseRating, volume: Volume, samples: Sequence[Volume], rows: int) -> Iterator[Blow]:
    if rating.ceiling is not None and volume.total > rating.ceiling:
        yield _over(volume.total, "changed rows", "ceiling", rating.ceiling, "ceiling")
    if rating.max_ratio is not None:
        yield from _by_ratio(rating.max_ratio, volume, rows)
    if rating.mode == "adaptive":
        deletions = baseline_of(rating, [sample.deleted for sample in samples])
        insertions = baseline_of(rating, [sample.inserted for sample in samples])
        if deletions is not None and insertions is not None:
            least = max(0.1 * (deletions.mean + insertions.mean), 1.0)
            yield from _by_baseline(rating.sensitivity, deletions, least, volume.deleted, "deletions")
            yield from _by_baseline(rating.sensitivity, insertions, least, volume.inserted, "insertions")
        elif 0 < rating.cold_start_ceiling < volume.total:
            yield _over(volume.total, "changed rows", "cold-start ceiling", rating.cold_start_ceiling, "cold_start")


def _over(count: int, what: str, limit: str, threshold: float, which: Which) -> Blow:
    return Blow(f"delta of {count} {what} exceeds {limit} {threshold:.0f}", which, count, threshold)


def _by_ratio(limit: float, volume: Volume, rows: int) -> Iterator[Blow]:
    for count, what in ((volume.deleted, "deletions"), (volume.inserted, "insertions")):
        # The first rows of an empty source are no share of anything.
        if rows > 0 and count > limit * rows:
            reason = f"delta of {count} {what} is {count / rows:.0%} of {rows} rows, over the limit of {limit:.0%}"
            yield Blow(reason, "ratio", count, limit * rows)


def _by_baseline(
    sensitivity: float, usual: Spread, least: float, count: int, what: Literal["deletions", "insertions"]
) -> Iterator[Blow]:
    sigma = max(usual.sigma, least)
    threshold = usual.mean + sensitivity * sigma
    if count > threshold:
        reason = (
            f"delta of {count} {what} exceeds adaptive threshold {threshold:.0f} "
            f"(mean {usual.mean:.0f}, {sensitivity:.1f} sigma {sensitivity * sigma:.0f})"
        )
        yield Blow(reason, what, count, threshold, usual.mean, sigma)


class FuseGate:
    """Whether a fuse of the table or of a source is blown, or blows at what waits to be read."""

    name = "fuse"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        answers: list[Verdict] = []
        for fuse in facts.fuses:
            answers.append(self._answer(table, fuse, facts))
            if not answers[-1].proceeds:
                break
        if not answers:
            return proceed(self.name, "no fuse")
        return answers[0] if len(answers) == 1 else together(self.name, answers)

    def _answer(self, table: TableFacts, fuse: FuseFacts, facts: Facts) -> Verdict:
        known = _without_counting(self.name, table, fuse)
        if known is not None:
            return known
        estimate = facts.volume(fuse.owner)
        if estimate is not None and should_blow(fuse.rating, estimate, fuse.samples, fuse.rows) is None:
            return proceed(self.name, f"at most {estimate.total} changed rows, as the log tells", owner=fuse.owner)
        exact = facts.exact_volume(fuse.owner)
        blow = should_blow(fuse.rating, exact, fuse.samples, fuse.rows)
        if blow is None:
            return proceed(self.name, f"{exact.total} changed rows, counted", owner=fuse.owner)
        return _blows(self.name, table, fuse, exact, blow)


class StagedFuseGate:
    """Whether the table's own fuse blows at the staged change.

    Few changed rows of a source may be many of the table. The past to compare with is that of the table's own changes;
    without one, only ceiling and ratio count, since the cold-start ceiling was asked about the sources. The ratio is of
    rows that the table loses or gains: a table of groups often changes all of its rows, and has as many as before.
    """

    name = "fuse"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        fuse = next((fuse for fuse in facts.fuses if fuse.owner == table.name), None)
        if fuse is None:
            return proceed(self.name, "no fuse of its own")
        known = _without_counting(self.name, table, fuse)
        if known is not None:
            return known
        staged = Volume(facts.delta.inserted, facts.delta.deleted)
        rating = replace(fuse.rating, cold_start_ceiling=0)
        blow = should_blow(replace(rating, max_ratio=None), staged, fuse.delta_samples, 0)
        if blow is None and rating.max_ratio is not None and rating.mode != "none":
            grown = staged.inserted - staged.deleted
            blow = next(_by_ratio(rating.max_ratio, Volume(max(grown, 0), max(-grown, 0)), fuse.table_rows), None)
        if blow is None:
            return proceed(self.name, f"{staged.total} rows change in the table", owner=fuse.owner)
        return _blows(self.name, table, fuse, staged, blow)


def _without_counting(gate: str, table: TableFacts, fuse: FuseFacts) -> Verdict | None:
    """The answer where no count matters."""
    if fuse.blown:
        reason = f"fuse of {fuse.owner} is blown since {moment(fuse.blown_at)}"
        why = "" if fuse.blow_reason is None else f": {fuse.blow_reason}"
        return block(gate, reason + why, owner=fuse.owner, blown_at=stamp(fuse.blown_at), blows=False)
    if fuse.rating.mode == "none":
        return proceed(gate, f"{fuse.owner} has no fuse", owner=fuse.owner)
    if fuse.passes_once:
        return proceed(gate, f"fuse of {fuse.owner} was reset and lets this refresh pass", owner=fuse.owner)
    if not table.populated:
        return proceed(gate, "the first fill is not guarded", owner=fuse.owner)
    return None


def _blows(gate: str, table: TableFacts, fuse: FuseFacts, volume: Volume, blow: Blow) -> Verdict:
    """The verdict that has the fuse blown; its details are those of the alert."""
    details: dict[str, Any] = {
        "blows": True,
        "owner": fuse.owner,
        "which": blow.which,
        "delta_row_count": volume.total,
        "inserted": volume.inserted,
        "deleted": volume.deleted,
        "baseline_mean": blow.baseline_mean,
        "baseline_stddev": blow.baseline_stddev,
        "ceiling": fuse.rating.ceiling,
        "computed_threshold": blow.computed_threshold,
        "blow_reason": blow.reason,
    }
    whose = "" if fuse.owner == table.name else f"fuse of {fuse.owner}: "
    return block(gate, whose + blow.reason, **details)
