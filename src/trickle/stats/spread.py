"""What a baseline says: a mean and a standard deviation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Where numbers lie and how far they scatter."""

    mean: float
    sigma: float
