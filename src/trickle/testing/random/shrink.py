"""A small case behind a large one: fewer choices and smaller ones that still fail.

A case is a function of the numbers that were chosen for it, and beyond their end every choice is 0, the simplest. So
numbers are left out, made 0, and halved, as long as what comes of them fails; in the time that is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from trickle.testing.random.choices import Choices

Fails = Callable[[Choices], bool]


def shrunk(numbers: Sequence[int], fails: Fails, seconds: float) -> list[int]:
    """The smallest numbers found that still fail.

    >>> shrunk([3, 9, 4, 7, 1], lambda choices: sum(choices.below(10) for _ in range(4)) > 9, 1)
    [3, 7]
    """
    best = list(numbers)
    end = time.monotonic() + seconds
    improved = True
    while improved:
        improved = False
        for smaller in _smaller(best):
            if time.monotonic() > end:
                return best
            if fails(Choices.replayed(smaller)):
                best = smaller
                improved = True
                break
    return best


def _smaller(numbers: list[int]) -> Iterator[list[int]]:
    size = len(numbers)
    while size:
        for start in range(0, len(numbers), size):
            yield numbers[:start] + numbers[start + size :]
            if any(numbers[start : start + size]):
                yield numbers[:start] + [0] * len(numbers[start : start + size]) + numbers[start + size :]
        size //= 2
    for place, number in enumerate(numbers):
        for less in sorted({number // 2, number - 1} - {-1, number}):
            yield [*numbers[:place], less, *numbers[place + 1 :]]
