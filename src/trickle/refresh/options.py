"""The options of a stream table: known names, checked values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trickle.algebra.names import nearest
from trickle.catalog.records import RefreshMode
from trickle.errors import InvalidOption
from trickle.settings import parse_duration


def check_mode(value: object) -> RefreshMode:
    """The refresh mode."""
    try:
        return RefreshMode(str(value).upper())
    except ValueError:
        raise InvalidOption(
            f"no refresh mode {value!r}", hint="refresh modes: AUTO, DIFFERENTIAL, FULL, IMMEDIATE"
        ) from None


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidOption(f"option {name} is true or false, not {value!r}")


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise InvalidOption(f"option {name} is text, not {value!r}")


def _names(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return list(value)
    raise InvalidOption(f"option {name} is one or several column names, not {value!r}")


def _duration(name: str, value: object) -> str:
    if isinstance(value, str) and parse_duration(value) is not None:
        return value.strip().lower()
    raise InvalidOption(f"option {name} is a duration such as 30s, not {value!r}")


def _choice(*allowed: str) -> Callable[[str, object], str]:
    def check(name: str, value: object) -> str:
        if isinstance(value, str) and value.lower() in allowed:
            return value.lower()
        raise InvalidOption(f"option {name} is not {value!r}", hint=f"{name}: " + ", ".join(allowed))

    return check


def _number(low: float, high: float) -> Callable[[str, object], float]:
    def check(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise InvalidOption(f"option {name} is a number within {low:g} to {high:g}, not {value!r}")
        return value

    return check


OPTIONS: Mapping[str, Callable[[str, object], Any]] = {
    "append_only": _flag,
    "auto_threshold": _number(0.0, 1.0),
    "cdc_mode": _choice("auto", "trigger", "wal"),
    "description": _text,
    "diamond_consistency": _choice("atomic", "none"),
    "diamond_schedule_policy": _choice("fastest", "slowest"),
    "freshness_deadline": _duration,
    "fuse": _choice("none", "fixed", "adaptive"),
    "fuse_baseline": _choice("window", "ewma"),
    "fuse_ceiling": _number(1, 1e15),
    "fuse_max_ratio": _number(0.0, 1.0),
    "fuse_sensitivity": _number(0.1, 100.0),
    "fuse_window_size": _number(2, 10_000),
    "max_delta_fraction": _number(0.0, 1.0),
    "partition_by": _names,
    "tier": _choice("hot", "warm", "cold", "frozen"),
}


def check_options(values: Mapping[str, object]) -> dict[str, object]:
    """The further options, checked; an option of None is left out."""
    checked: dict[str, object] = {}
    for name, value in values.items():
        key = name.lower()
        if key not in OPTIONS:
            close = nearest(key, [*OPTIONS, "schedule", "refresh_mode", "initialize"])
            raise InvalidOption(
                f"a stream table has no option {name!r}",
                hint=f"did you mean {close!r}?" if close else "options: " + ", ".join(sorted(OPTIONS)),
            )
        if value is not None:
            checked[key] = OPTIONS[key](key, value)
    if "diamond_schedule_policy" in checked and checked.get("diamond_consistency") == "none":
        raise InvalidOption(
            "diamond_schedule_policy needs diamond_consistency = 'atomic'", hint="leave one of the two options out"
        )
    return checked
