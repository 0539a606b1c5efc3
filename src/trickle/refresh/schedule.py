"""How schedules are written: durations, cron expressions with a time zone, macros, ``calculated`` (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

from croniter import croniter

from trickle.errors import InvalidOption
from trickle.settings import parse_duration, show_duration

CALCULATED = "calculated"
_ZONE_PREFIX = "CRON_TZ="
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True)
class Every:
    """Again when this much time has passed."""

    interval: timedelta

    def __str__(self) -> str:
        return show_duration(self.interval)


@dataclass(frozen=True)
class Cron:
    """At the times of a cron expression: minute, hour, day, month, weekday; a sixth field in front is the second."""

    expression: str
    zone: str
    text: str
    """As it was written."""

    def __str__(self) -> str:
        return self.text if self.zone == "UTC" or self.text.startswith(_ZONE_PREFIX) else f"{self.text} ({self.zone})"

    @property
    def is_every_hour(self) -> bool:
        fields = self.expression.split()
        return fields[len(fields) - 4].startswith("*")


Schedule: TypeAlias = Every | Cron


def split_zone(text: str) -> tuple[str | None, str]:
    """The time zone in front of a cron expression, if there is one, and the rest.

    >>> split_zone("CRON_TZ=Europe/Berlin 0 6 * * *")
    ('Europe/Berlin', '0 6 * * *')
    """
    if not text.startswith(_ZONE_PREFIX):
        return None, text
    zone, _, rest = text.removeprefix(_ZONE_PREFIX).partition(" ")
    return zone, rest.strip()


@lru_cache(maxsize=4096)
def parse_schedule(text: str, zone: str = "UTC") -> Schedule | None:
    """A schedule; None for ``calculated``. ``zone`` is for cron expressions that name none.

    >>> parse_schedule("1h30m")
    Every(interval=datetime.timedelta(seconds=5400))
    """
    written = text.strip()
    if written.lower() == CALCULATED:
        return None
    interval = parse_duration(written)
    if interval is not None:
        return Every(interval)
    named, rest = split_zone(written)
    expression = _MACROS.get(rest.lower(), rest)
    if len(expression.split()) not in (5, 6) or not croniter.is_valid(expression, second_at_beginning=True):
        raise InvalidOption(
            f"not a schedule: {text!r}",
            hint="write a duration (30s, 1h30m), a cron expression of 5 or 6 fields (CRON_TZ=Europe/Berlin in front of "
            "it for a time zone), @hourly and the like, or calculated",
        )
    try:
        return Cron(expression, ZoneInfo(named or zone).key, written)
    except (ValueError, OSError, LookupError):
        raise InvalidOption(f"no time zone {named or zone!r}", hint="such as 'UTC' or 'Europe/Berlin'") from None


def check_schedule(value: object) -> str:
    """A schedule, normalised: a duration, a cron expression of 5 or 6 fields, a macro, or ``calculated``."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidOption(
            "a stream table needs a schedule", hint="schedule = '5s', '1h30m', '@hourly' or 'calculated'"
        )
    text = value.strip()
    found = parse_schedule(text)
    if isinstance(found, Every) and found.interval < _SHORTEST:
        raise InvalidOption("a schedule is at least one second", detail=text)
    return text if isinstance(found, Cron) and not text.startswith("@") else text.lower()
