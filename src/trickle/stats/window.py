"""A rolling window: only the newest numbers count, and all of them the same."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.stats.spread import Spread
from trickle.stats.welford import spread


def rolling(values: Sequence[float], size: int) -> Spread | None:
    """Mean and standard deviation of the last ``size`` numbers, oldest first; None of nothing.

    The window is computed anew: taking the oldest number out of a running sum would let rounding errors pile up, and
    a window has some twenty numbers.

    >>> rolling([1000, 1, 2, 3], size=3)
    Spread(mean=2.0, sigma=1.0)
    """
    return spread(values[-size:] if size > 0 else ())
