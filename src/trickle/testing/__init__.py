"""For tests of stream tables, ours and yours: an oracle, a clock that stands still, faults at every step."""

from trickle.testing.clock import FakeClock
from trickle.testing.faults import Fault, kill_at, raise_at
from trickle.testing.oracle import Mismatch, check

__all__ = ["FakeClock", "Fault", "Mismatch", "check", "kill_at", "raise_at"]
