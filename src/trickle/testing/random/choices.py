"""Where the randomness comes from: whole numbers below a bound, from a seed or from a list."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Answers to questions. Of each question 0, the first option or no, is the simplest answer."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self._below = below
        self.made: list[int] = []

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Choices that are the same for the same seed."""
        return cls(random.Random(seed).randrange)  # noqa: S311 - no secret

    @classmethod
    def replayed(cls, numbers: Sequence[int]) -> Choices:
        """The choices that were made, and the simplest beyond them."""
        left = iter(numbers)
        return cls(lambda bound: min(next(left, 0), bound - 1))

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1."""
        if bound <= 1:
            return 0
        number = self._below(bound)
        self.made.append(number)
        return number

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return self.below(100) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        """One of the options, by their weights."""
        left = self.below(sum(weight for _, weight in options))
        for option, weight in options:
            if left < weight:
                return option
            left -= weight
        raise AssertionError("weights were exhausted")

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Some of the options, each once at most, in their order."""
        wanted = min(len(options), least + self.below(most - least + 1))
        left = list(range(len(options)))
        places = sorted(left.pop(self.below(len(left))) for _ in range(wanted))
        return [options[place] for place in places]
