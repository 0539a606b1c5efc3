"""The steps of bringing a publication to the present, named so that a fault can be put at each.

``reached`` does nothing in production. The tests raise from it, or kill the process in it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """In the order in which they are passed."""

    READ = "read"
    """What changed is at hand."""
    COPIED = "copied"
    """It is in a table of the session."""
    APPLIED = "applied"
    POSITIONED = "positioned"
    COMMITTED = "committed"
    NOTED = "noted"
    """The catalog knows of it."""


_observer: Callable[[Step], None] | None = None


def observe(observer: Callable[[Step], None] | None) -> None:
    """Have ``observer`` called at every step; None to stop."""
    global _observer
    _observer = observer


def reached(step: Step) -> None:
    """Say that a step is done."""
    if _observer is not None:
        _observer(step)
