"""Mean and standard deviation in one pass, by Welford's algorithm.

The textbook formula (mean of squares less square of the mean) subtracts two large numbers that are almost equal and can
end below zero. Welford adds up squared distances from the mean so far, so that nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from trickle.stats.spread import Spread


@dataclass(frozen=True)
class Welford:
    """Numbers seen so far, as their count, mean and sum of squared distances from it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> Welford:
        """With one more number."""
        count = self.count + 1
        before = value - self.mean
        mean = self.mean + before / count
        return Welford(count, mean, self.squares + before * (value - mean))

    @property
    def sigma(self) -> float:
        """The standard deviation of a sample; 0 for fewer than two numbers."""
        return sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0


def spread(values: Iterable[float]) -> Spread | None:
    """Mean and standard deviation; None of nothing.

    >>> spread([2, 4, 4, 4, 5, 5, 7, 9])
    Spread(mean=5.0, sigma=2.138089935299395)
    """
    seen = Welford()
    for value in values:
        seen = seen.add(value)
    return Spread(seen.mean, seen.sigma) if seen.count else None
