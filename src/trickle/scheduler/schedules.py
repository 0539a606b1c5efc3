"""When a stream table is due: durations, cron expressions, schedules that follow from downstream, tiers (pure).

A duration is due when it has passed since the last refresh, stretched by the tier and by the back-off. A cron
expression is due when one of its times lies after the last refresh and not after now; it names moments that somebody
counts on, so nothing stretches it. ``calculated`` is as often as the tightest schedule among the stream tables that
read the table, and whenever a stream table that it reads has changed.

Clock changes, for cron: a time that the clock jumps over is due at the jump; a time that comes twice is due the first
time, or both times where the hour is ``*``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

from trickle.dag.graph import closure, reverse
from trickle.dag.streams import Key
from trickle.gates.facts import Due
from trickle.refresh.schedule import CALCULATED, Cron, Every, Schedule, parse_schedule

__all__ = [
    "CALCULATED",
    "FASTEST",
    "FROZEN",
    "SLOWEST",
    "TIERS",
    "Cron",
    "Effective",
    "Every",
    "Schedule",
    "Scheduled",
    "due",
    "effective_schedules",
    "next_fire",
    "parse_schedule",
    "policy_of",
    "tightness",
    "unit_is_due",
]

FROZEN = "frozen"
TIERS = {"hot": 1, "warm": 2, "cold": 10}
FASTEST, SLOWEST = "fastest", "slowest"

_ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
_NEVER = timedelta(days=365_000)


@lru_cache(maxsize=16_384)
def next_fire(cron: Cron, after: datetime) -> datetime | None:
    """The first time of a cron expression after a moment; None when there is none (30 February)."""
    fires = croniter(cron.expression, after.astimezone(ZoneInfo(cron.zone)), second_at_beginning=True)
    try:
        found: datetime = fires.get_next(datetime)
        while found.fold and not cron.is_every_hour:
            found = fires.get_next(datetime)
    except CroniterBadDateError:
        return None
    return found.astimezone(UTC)


@lru_cache(maxsize=4096)
def tightness(schedule: Schedule) -> timedelta:
    """How often a schedule comes: of a cron expression the shortest time between two of its next times."""
    if isinstance(schedule, Every):
        return schedule.interval
    times: list[datetime] = []
    at: datetime | None = _ANCHOR
    while at is not None and len(times) < 32:
        at = next_fire(schedule, at)
        if at is not None:
            times.append(at)
    return min((later - earlier for earlier, later in pairwise(times)), default=_NEVER)


@dataclass(frozen=True)
class Scheduled:
    """What was asked for one stream table."""

    schedule: str
    tier: str = "hot"


@dataclass(frozen=True)
class Effective:
    """The schedule that a stream table is kept by."""

    schedule: Schedule
    factor: int
    """What the tiers stretch a duration by; 0 for never."""
    words: str
    is_calculated: bool = False

    @property
    def interval(self) -> timedelta:
        """How often it is refreshed, tiers included."""
        if self.factor == 0:
            return _NEVER
        stretch = self.factor if isinstance(self.schedule, Every) else 1
        return min(tightness(self.schedule) * stretch, _NEVER)


def effective_schedules(
    tables: Mapping[Key, Scheduled],
    readers: Mapping[Key, Collection[Key]],
    *,
    default: str = "1m",
    zone: str = "UTC",
    tiered: bool = True,
    names: Mapping[Key, str] | None = None,
) -> dict[Key, Effective]:
    """The schedule of every stream table; ``readers`` has the stream tables that read each one directly.

    The tightest schedules are settled first and handed up to what they read; a stretched schedule is never tighter
    than the one it came from, so a settled one stays (Dijkstra). It ends in cycles as well.
    """
    factors = {key: _factor(table.tier, tiered) for key, table in tables.items()}
    asked = {key: parse_schedule(table.schedule, zone) for key, table in tables.items()}
    calculated = {key for key, schedule in asked.items() if schedule is None}
    hands_to = {
        reader: [source for source in found if source in calculated]
        for reader, found in reverse(readers).items()
        if factors.get(reader)
    }
    by_default = _without_reader(calculated, hands_to)
    settled: dict[Key, Effective] = {}
    waiting: list[tuple[timedelta, Key, str, int, Effective]] = []

    def offer(key: Key, one: Effective) -> None:
        # The words decide between equals, so that the result does not depend on the order of the tables.
        heappush(waiting, (one.interval, key, one.words, len(waiting), one))

    for key, schedule in asked.items():
        if schedule is not None:
            offer(key, Effective(schedule, factors[key], str(schedule)))
        elif key in by_default:
            offer(key, _by_default(default, zone, factors[key]))
    while waiting:
        *_, key, _, _, one = heappop(waiting)
        if key in settled:
            continue
        settled[key] = one
        for source in hands_to.get(key, ()):
            name = str(key) if names is None else names.get(key, str(key))
            words = f"{CALCULATED} ({one.schedule}, from {name})"
            offer(source, Effective(one.schedule, one.factor * factors[source], words, True))
    return settled


def _without_reader(calculated: Collection[Key], hands_to: Mapping[Key, Collection[Key]]) -> set[Key]:
    """The calculated tables that no table hands a schedule to, or that only hand one round a cycle."""
    read = {source for found in hands_to.values() for source in found}
    starts = [key for key in hands_to if key not in calculated or key not in read]
    handed = closure(hands_to, starts)
    return {key for key in calculated if key not in handed}


def _factor(tier: str, tiered: bool) -> int:
    return TIERS.get(tier, 0) if tiered else 1


def _by_default(default: str, zone: str, factor: int) -> Effective:
    schedule = parse_schedule(default, zone) or Every(timedelta(minutes=1))
    return Effective(schedule, factor, f"{CALCULATED} ({schedule}, as nothing reads it)", True)


def due(
    effective: Effective, last: datetime | None, now: datetime, *, backoff: float = 1, upstream_changed: bool = False
) -> Due:
    """Whether a stream table that was last refreshed at ``last`` is due.

    ``upstream_changed``: a stream table that it reads was refreshed with changes in this tick.
    """
    words = effective.words
    if effective.factor == 0:
        return Due(f"{words}, tier {FROZEN}", due=False)
    stretch = effective.factor * backoff
    if isinstance(effective.schedule, Every) and stretch > 1:
        words = f"{words}, stretched x{stretch:g}"
    if last is None:
        return Due(words, due=True, next_at=now)
    next_at = _next_at(effective.schedule, last, stretch)
    follows = effective.is_calculated and upstream_changed
    return Due(words, due=follows or (next_at is not None and next_at <= now), next_at=next_at)


def _next_at(schedule: Schedule, last: datetime, stretch: float) -> datetime | None:
    if isinstance(schedule, Cron):
        return next_fire(schedule, last)
    try:
        return last + schedule.interval * stretch
    except OverflowError:  # Past the last year that a date can have.
        return None


def policy_of(policies: Iterable[str | None]) -> str:
    """The policy of a unit, from those of its members: slowest where one member asks for it."""
    return SLOWEST if SLOWEST in policies else FASTEST


def unit_is_due(dues: Collection[Due], policy: str = FASTEST) -> bool:
    """Whether a unit is due: with ``fastest`` when one of its members is, with ``slowest`` when all are."""
    return all(one.due for one in dues) if policy == SLOWEST else any(one.due for one in dues)
