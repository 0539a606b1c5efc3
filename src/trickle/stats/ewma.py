"""Exponentially weighted mean and deviation: recent numbers count more, so a shift of the level is soon the new normal.

With ``a`` the share of the newest number: ``mean' = mean + a d`` and ``variance' = (1 - a) (variance + a d^2)``, where
``d`` is the distance of the new number from the old mean. It is the variance under the same weights, without keeping
the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from trickle.stats.spread import Spread


@dataclass(frozen=True)
class Ewma:
    """Numbers seen so far, under weights that fade."""

    share: float
    """What the newest number counts, above 0 and at most 1."""
    mean: float | None = None
    variance: float = 0.0

    def add(self, value: float) -> Ewma:
        """With one more number."""
        if self.mean is None:
            return Ewma(self.share, float(value))
        distance = value - self.mean
        step = self.share * distance
        return Ewma(self.share, self.mean + step, (1 - self.share) * (self.variance + distance * step))


def share_of(window_size: int) -> float:
    """The share whose numbers are on average as old as those of a window: 2 / (n + 1)."""
    return 2 / (window_size + 1)


def fading(values: Iterable[float], window_size: int) -> Spread | None:
    """Weighted mean and standard deviation, oldest number first; None of nothing.

    >>> fading([0, 0, 10], window_size=3)
    Spread(mean=5.0, sigma=5.0)
    """
    seen = Ewma(share_of(window_size))
    for value in values:
        seen = seen.add(value)
    return None if seen.mean is None else Spread(seen.mean, sqrt(seen.variance))
