"""Settings: few, typed, in one place. A setting is here only when code reads it.

Later wins: default, ``trickle.toml`` (table ``[trickle]``), environment (``TRICKLE_<NAME>``), the catalog
(``SET trickle.<name> = ...``), arguments of ``connect``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from trickle.algebra.names import nearest
from trickle.errors import InvalidOption

ENVIRONMENT_PREFIX = "TRICKLE_"

Value: TypeAlias = bool | int | float | str | timedelta
_Reader: TypeAlias = Callable[[str, object], Value]

_TYPES = {"str": "text", "timedelta": "duration"}
# As many digits as a timedelta can hold.
_DURATION = re.compile(r"(?:(\d{1,7})w)?(?:(\d{1,8})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?\Z", re.ASCII)
_SHORTEST_SCHEDULE = timedelta(seconds=1)


def parse_duration(text: str) -> timedelta | None:
    """A duration such as ``30s`` or ``1h30m``; None when the text is not one.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    found = _DURATION.match(text.strip().lower())
    if not text.strip() or found is None:
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(duration: timedelta) -> str:
    """A duration as ``parse_duration`` reads it, to the second.

    >>> show_duration(timedelta(hours=25, seconds=3)), show_duration(timedelta())
    ('1d1h3s', '0s')
    """
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _flag(default: bool, text: str) -> Any:
    def read(name: str, value: object) -> bool:
        word = str(value).strip().lower()
        if word in ("true", "on", "1", "yes"):
            return True
        if word in ("false", "off", "0", "no"):
            return False
        raise InvalidOption(f"setting {name!r} is on or off, not {value!r}", hint=f"{name} = true or {name} = false")

    return _setting(default, text, read, "true, false")


def _number(default: float, text: str, *, low: float = 0, high: float = 1_000_000) -> Any:
    is_share = isinstance(default, float)

    def read(name: str, value: object) -> float:
        try:
            number = float(str(value)) if is_share else int(str(value))
        except ValueError:
            kind = "number" if is_share else "whole number"
            hint = f"write a {kind} from {low} to {high}"
            raise InvalidOption(f"setting {name!r} is a {kind}, not {value!r}", hint=hint) from None
        if not low <= number <= high:
            raise InvalidOption(
                f"setting {name!r} is out of range",
                detail=f"{number} is not within {low} to {high}",
                hint=f"the default is {default}",
            )
        return number

    return _setting(default, text, read, f"{low} to {high}")


def _choice(default: str, text: str, *allowed: str) -> Any:
    def read(name: str, value: object) -> str:
        word = str(value).strip().lower()
        if word not in allowed:
            close = nearest(word, allowed)
            raise InvalidOption(
                f"setting {name!r} cannot be {value!r}",
                detail="it is one of " + ", ".join(allowed),
                hint=f"did you mean {close!r}?" if close else f"the default is {default!r}",
            )
        return word

    return _setting(default, text, read, ", ".join(allowed))


def _text(default: str, text: str, read: _Reader, allowed: str) -> Any:
    return _setting(default, text, read, allowed)


def _duration(default: timedelta, text: str) -> Any:
    def read(name: str, value: object) -> timedelta:
        found = value if isinstance(value, timedelta) else parse_duration(str(value))
        if found is None or found < timedelta():
            raise InvalidOption(f"setting {name!r} is a duration, not {value!r}", hint="such as '30s' or '1h30m'")
        return found

    return _setting(default, text, read, "a duration")


def _setting(default: Value, text: str, read: _Reader, allowed: str) -> Any:
    return field(default=default, metadata={"text": text, "read": read, "allowed": allowed})


def _interval(name: str, value: object) -> str:
    text = str(value).strip().lower()
    found = parse_duration(text)
    if found is None or found < _SHORTEST_SCHEDULE:
        raise InvalidOption(
            f"setting {name!r} is a duration of at least one second, not {value!r}", hint="such as '30s' or '1h30m'"
        )
    return text


def _identifier(name: str, value: object) -> str:
    text = str(value)
    # PostgreSQL cuts off what is longer.
    if not text or len(text.encode()) > 63 or "\0" in text:
        raise InvalidOption(f"setting {name!r} is a name of 1 to 63 bytes, not {value!r}")
    return text


def _time_zone(name: str, value: object) -> str:
    text = str(value).strip()
    try:
        return ZoneInfo(text).key
    except (ValueError, OSError, LookupError):
        close = nearest(text, available_timezones())
        raise InvalidOption(
            f"setting {name!r} is a time zone, not {value!r}",
            hint=f"did you mean {close!r}?" if close else "such as 'UTC' or 'Europe/Berlin'",
        ) from None


def _web_address(name: str, value: object) -> str:
    text = str(value).strip()
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", text)
    except ValueError:
        is_address = False
    if text and not is_address:
        raise InvalidOption(
            f"setting {name!r} is not a web address",
            # The path often holds a secret.
            hint="write the whole address with http:// or https://, or '' for none",
        )
    return text


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults."""

    block_source_ddl: bool = _flag(True, "refuse DDL that would break a stream table built on the source")
    max_consecutive_errors: int = _number(3, "failed refreshes in a row before a stream table is suspended", low=1)
    max_parse_depth: int = _number(64, "nesting of a query at which it is refused", low=1, high=200)
    commit_attempts: int = _number(8, "tries of a statement when other writers come first", low=1, high=1000)
    capture_schema: str = _text(
        "trickle_capture", "schema of the change buffers in an attached PostgreSQL database", _identifier, "a name"
    )
    cdc_trigger_mode: str = _choice("statement", "triggers of an attached table fire once for", "statement", "row")
    unlogged_buffers: bool = _flag(False, "change buffers are lost when the server crashes, and cost less to write")
    on_source_ddl: str = _choice(
        "refuse", "a used column of an attached table that is dropped or retyped", "refuse", "reinitialize"
    )
    poll_interval: str = _text(
        "1m", "time between two readings of a polled source that names none", _interval, "a duration from 1s"
    )
    slot_lag_warning_mb: int = _number(
        100, "WAL that a PostgreSQL server keeps for a slot before it is a warning", low=1
    )
    slot_lag_critical_mb: int = _number(1024, "WAL that a server keeps for a slot before it is critical", low=1)
    publish_schema: str = _text(
        "trickle_publish", "schema of the positions of published tables in their database", _identifier, "a name"
    )
    publish_channel: str = _text(
        "trickle_published",
        "channel that listeners are notified on after a published table changed",
        _identifier,
        "a name",
    )
    differential_max_change_ratio: float = _number(
        0.15, "share of changed rows above which AUTO refreshes in full, until it knows what both cost", high=1.0
    )
    ivm_recursive_max_depth: int = _number(1000, "rounds of a recursion at which it is given up", low=1)
    ivm_topk_max_limit: int = _number(
        1000, "rows of ORDER BY ... LIMIT that an IMMEDIATE stream table in PostgreSQL keeps", low=1, high=100_000
    )
    algebraic_drift_reset_cycles: int = _number(
        0, "refreshes by changes after which floating sums are computed anew; 0 for never"
    )
    lookup_index_mb: int = _number(
        8192, "disk for indexes of the files that refreshes look rows up in, in MB; 0 for none", high=10**9
    )
    history_retention_days: int = _number(90, "age at which vacuum removes refresh history", low=1)
    vacuum_retention_hours: int = _number(168, "age at which vacuum removes unreferenced files")

    default_schedule: str = _text(
        "1m", "schedule of a calculated stream table that nothing reads", _interval, "a duration from 1s"
    )
    schedule_timezone: str = _text(
        "UTC", "time zone of cron schedules that name none", _time_zone, "a name of the IANA database"
    )
    scheduler_interval_ms: int = _number(1000, "time between two looks of the scheduler when nothing wakes it", low=10)
    max_concurrent_refreshes: int = _number(4, "units that are refreshed side by side", low=1, high=256)
    parallel_refresh_mode: bool = _flag(True, "refresh units that do not depend on each other side by side")
    schema_quota: int = _number(0, "units of one schema that are refreshed side by side; 0 for no limit", high=256)
    tiered_scheduling: bool = _flag(True, "stretch the schedules of warm, cold and frozen stream tables")
    auto_backoff: bool = _flag(True, "stretch the schedule of a stream table that cannot keep it")
    refresh_retries: int = _number(3, "tries of a refresh again after a transient error", high=20)
    lease_seconds: int = _number(15, "silence of a leading scheduler after which another takes over", low=1, high=3600)
    allow_circular: bool = _flag(False, "allow stream tables that read each other in a circle, where that is monotone")
    max_fixpoint_iterations: int = _number(100, "rounds of a circle of stream tables at which it is given up", low=1)

    fuse_default: str = _choice("none", "fuse of stream tables that name none", "none", "fixed", "adaptive")
    fuse_cold_start_ceiling: int = _number(
        10_000, "changed rows that blow an adaptive fuse without a baseline; 0 for none", high=10**15
    )
    watermark_stuck_after: timedelta = _duration(  # noqa: RUF009 - makes a field, as the others do
        timedelta(), "silence of a watermark after which an alert is raised; 0s for never"
    )
    alert_webhook: str = _text("", "address that alerts are posted to; empty for none", _web_address, "http or https")


def describe() -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of every setting, for the documentation."""
    return [(f.name, _TYPES.get(str(f.type), str(f.type)), spell(f.default), f.metadata["text"]) for f in _FIELDS]


def allowed_values(name: str) -> str:
    """What a setting may be, in words."""
    check_name(name)
    return str(_BY_NAME[name].metadata["allowed"])


def spell(value: object) -> str:
    """A value as ``trickle.toml`` has it.

    >>> spell(True), spell("1m"), spell(timedelta(minutes=5))
    ('true', '"1m"', '"5m"')
    """
    if isinstance(value, timedelta):
        return json.dumps(show_duration(value))
    # JSON's escapes of characters beyond the first plane are none in TOML, and it leaves DEL as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def check_name(name: str) -> None:
    """Refuse the name of a setting that does not exist."""
    if name not in _BY_NAME:
        close = nearest(name, _BY_NAME)
        raise InvalidOption(
            f"unknown setting {name!r}",
            hint=f"did you mean {close!r}?" if close else "settings: " + ", ".join(_BY_NAME),
        )


def parse_value(name: str, value: object) -> Value:
    """The value of a setting from text or a plain value; refuses unknown names and wrong types."""
    check_name(name)
    read: _Reader = _BY_NAME[name].metadata["read"]
    return read(name, value)


def combine(base: Settings, values: Mapping[str, object]) -> Settings:
    """The settings with some of them replaced."""
    parsed: dict[str, Any] = {name: parse_value(name, value) for name, value in values.items()}
    return replace(base, **parsed)


def from_toml(text: str) -> dict[str, object]:
    """The values of a ``trickle.toml``."""
    try:
        section = tomllib.loads(text).get("trickle", {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidOption("trickle.toml is not valid TOML", detail=str(error)) from None
    if not isinstance(section, dict):
        raise InvalidOption("trickle.toml has no table [trickle]")
    return section


def from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """The values set as ``TRICKLE_<NAME>``; other variables with that prefix are not settings."""
    names = {ENVIRONMENT_PREFIX + name.upper(): name for name in _BY_NAME}
    return {names[key]: value for key, value in environment.items() if key in names}


_FIELDS = fields(Settings)
_BY_NAME = {f.name: f for f in _FIELDS}
