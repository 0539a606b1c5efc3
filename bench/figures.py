"""What a benchmark returns: timed lines with the facts that explain them, and claims that figures must meet."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Fact = int | float | str | None


@dataclass(frozen=True)
class Line:
    """One thing that was timed, once or several times."""

    what: str
    samples_ms: tuple[float, ...]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    limit_ms: float | None = None
    """What the median must stay under; None when nothing is promised."""

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples_ms)

    @property
    def p95_ms(self) -> float:
        """The smallest sample that 95 of 100 do not exceed."""
        ordered = sorted(self.samples_ms)
        return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)]

    @property
    def passed(self) -> bool | None:
        """None when nothing is promised."""
        return None if self.limit_ms is None else self.median_ms < self.limit_ms

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "what": self.what,
            "runs": len(self.samples_ms),
            "median_ms": round(self.median_ms, 3),
            "p95_ms": round(self.p95_ms, 3),
            "min_ms": round(min(self.samples_ms), 3),
            "max_ms": round(max(self.samples_ms), 3),
            "facts": dict(self.facts),
            "limit_ms": self.limit_ms,
            "passed": self.passed,
        }


@dataclass(frozen=True)
class Claim:
    """A figure over a whole table, with what is promised about it."""

    what: str
    value: float | None
    """None when it could not be found out."""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def passed(self) -> bool | None:
        """None when nothing is promised, or when that cannot be told."""
        if self.value is None or (self.at_least is None and self.at_most is None):
            return None
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.value <= high

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        value = None if self.value is None else round(self.value, 3)
        return {
            "what": self.what,
            "value": value,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "passed": self.passed,
        }


@dataclass(frozen=True)
class Note:
    """How far a long benchmark has come; said and forgotten."""

    text: str


def geometric_mean(values: Iterable[float]) -> float | None:
    """The mean of ratios; None when there are none.

    >>> geometric_mean([2.0, 8.0]), geometric_mean([])
    (4.0, None)
    """
    known = list(values)
    return round(statistics.geometric_mean(known), 6) if known else None


def timed(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    """How many milliseconds a call took, and what it returned."""
    start = time.perf_counter()
    result = work(*args, **kwargs)
    return (time.perf_counter() - start) * 1000, result
