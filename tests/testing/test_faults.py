"""Faults at the steps of a commit."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from trickle.apply.steps import Step, reached
from trickle.testing import Fault, raise_at


def test_a_fault_is_raised_at_its_step_and_no_other() -> None:
    with raise_at(Step.TABLE_COMMITTED, member=1) as seen:
        reached(Step.STAGED)
        reached(Step.TABLE_COMMITTED, 0)
        with pytest.raises(Fault, match="table committed, member 1"):
            reached(Step.TABLE_COMMITTED, 1)
    assert seen == [(Step.STAGED, 0), (Step.TABLE_COMMITTED, 0), (Step.TABLE_COMMITTED, 1)]


def test_after_the_block_nothing_is_watched() -> None:
    with raise_at(Step.STAGED):
        pass
    reached(Step.STAGED)
    with pytest.raises(ValueError, match="mine"), raise_at(Step.STAGED):
        raise ValueError("mine")
    reached(Step.STAGED)


DIE = """
from trickle.apply.steps import Step, reached
from trickle.testing.faults import kill_at

kill_at(Step.INTENT_WRITTEN)
reached(Step.STAGED)
print("staged", flush=True)
reached(Step.INTENT_WRITTEN)
print("never said")
"""


def test_a_process_is_killed_for_real() -> None:
    child = subprocess.run([sys.executable, "-c", DIE], capture_output=True, text=True, timeout=60, check=False)
    assert (child.returncode, child.stdout) == (-signal.SIGKILL, "staged\n")
