"""The steps of making, moving and removing a stream table in PostgreSQL, named so that a fault can be put at each.

``reached`` does nothing in production. The tests raise from it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """In the order in which they are passed."""

    NOTED = "noted in the catalog"
    INSTALLED = "made in PostgreSQL"
    LINKED = "the stream table lives in PostgreSQL"
    PLACED = "the lake has a place for it"
    FILLED = "filled in the lake"
    UNLINKED = "the stream table lives in the lake"
    REDEFINED = "its new query is in the catalog"
    REMOVED = "removed from PostgreSQL"


_observer: Callable[[Step], None] | None = None


def observe(observer: Callable[[Step], None] | None) -> None:
    """Have ``observer`` called at every step; None to stop."""
    global _observer
    _observer = observer


def reached(step: Step) -> None:
    """Say that a step is done."""
    if _observer is not None:
        _observer(step)
