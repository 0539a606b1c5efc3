"""Settings: few, typed, in one place. A setting is here only when code reads it.

Later wins: default, ``trickle.toml`` (table ``[trickle]``), environment (``TRICKLE_<NAME>``), the catalog
(``SET trickle.<name> = ...``), arguments of ``connect``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from trickle.algebra.names import nearest
from trickle.errors import InvalidOption

ENVIRONMENT_PREFIX = "TRICKLE_"


def _setting(default: bool | float, text: str, *, low: float = 0, high: float = 1_000_000) -> Any:
    return field(default=default, metadata={"text": text, "low": low, "high": high})


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults."""

    block_source_ddl: bool = _setting(True, "refuse DDL that would break a stream table built on the source")
    max_consecutive_errors: int = _setting(3, "failed refreshes in a row before a stream table is suspended", low=1)
    max_parse_depth: int = _setting(64, "nesting of a query at which it is refused", low=1, high=200)
    commit_attempts: int = _setting(8, "tries of a statement when other writers come first", low=1, high=1000)
    differential_max_change_ratio: float = _setting(
        0.15, "share of changed rows above which AUTO refreshes in full, until it knows what both cost", high=1.0
    )
    ivm_recursive_max_depth: int = _setting(1000, "rounds of a recursion at which it is given up", low=1)
    algebraic_drift_reset_cycles: int = _setting(
        0, "refreshes by changes after which floating sums are computed anew; 0 for never"
    )
    history_retention_days: int = _setting(90, "age at which vacuum removes refresh history", low=1)
    vacuum_retention_hours: int = _setting(168, "age at which vacuum removes unreferenced files")


def describe() -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of every setting, for the documentation."""
    return [(f.name, str(f.type), str(f.default).lower(), str(f.metadata["text"])) for f in fields(Settings)]


def check_name(name: str) -> None:
    """Refuse the name of a setting that does not exist."""
    known = [f.name for f in fields(Settings)]
    if name not in known:
        close = nearest(name, known)
        raise InvalidOption(
            f"unknown setting {name!r}",
            hint=f"did you mean {close!r}?" if close else "settings: " + ", ".join(known),
        )


def parse_value(name: str, value: object) -> bool | int | float:
    """The value of a setting from text or a plain value; refuses unknown names and wrong types."""
    check_name(name)
    wanted = next(f for f in fields(Settings) if f.name == name)
    text = str(value).strip().lower()
    if isinstance(wanted.default, bool):
        if text in ("true", "on", "1", "yes"):
            return True
        if text in ("false", "off", "0", "no"):
            return False
        raise InvalidOption(f"setting {name!r} is on or off, not {value!r}")
    low, high = wanted.metadata["low"], wanted.metadata["high"]
    is_share = isinstance(wanted.default, float)
    try:
        number = float(text) if is_share else int(text)
    except ValueError:
        kind = "number" if is_share else "whole number"
        raise InvalidOption(f"setting {name!r} is a {kind}, not {value!r}") from None
    if not low <= number <= high:
        raise InvalidOption(f"setting {name!r} is out of range", detail=f"{number} is not within {low} to {high}")
    return number


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
    names = {ENVIRONMENT_PREFIX + f.name.upper(): f.name for f in fields(Settings)}
    return {names[key]: value for key, value in environment.items() if key in names}
