"""The steps between staging and the end of a unit's commit, named so that a fault can be put at each.

``reached`` does nothing in production. The tests watch it, raise from it, or kill the process in it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """In the order in which a unit passes them."""

    STARTED = "started"
    STAGED = "staged"
    INTENT_WRITTEN = "intent written"
    TABLE_COMMITTED = "table committed"
    TABLES_COMMITTED = "tables committed"
    FINALISED = "finalised"


_observer: Callable[[Step, int], None] | None = None


def observe(observer: Callable[[Step, int], None] | None) -> None:
    """Have ``observer`` called at every step with the number of the member it concerns; None to stop."""
    global _observer
    _observer = observer


def reached(step: Step, member: int = 0) -> None:
    """Say that a step is done."""
    if _observer is not None:
        _observer(step, member)
