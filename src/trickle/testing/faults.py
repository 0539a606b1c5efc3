"""Faults at the steps of a unit's commit: an exception, or the process killed for real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from trickle.apply.steps import Step, observe


class Fault(Exception):
    """What ``raise_at`` raises: an error that no code expects."""


@contextmanager
def raise_at(step: Step, member: int = 0) -> Iterator[list[tuple[Step, int]]]:
    """Raise a Fault when a step is reached; the list gathers the steps that were."""
    seen: list[tuple[Step, int]] = []

    def watch(reached: Step, place: int) -> None:
        seen.append((reached, place))
        if (reached, place) == (step, member):
            raise Fault(f"at step {step}, member {member}")

    observe(watch)
    try:
        yield seen
    finally:
        observe(None)


def kill_at(step: Step, member: int = 0) -> None:
    """Have this process killed with SIGKILL when a step is reached. There is no way back: use it in a child."""

    def watch(reached: Step, place: int) -> None:
        if (reached, place) == (step, member):
            os.kill(os.getpid(), signal.SIGKILL)

    observe(watch)
