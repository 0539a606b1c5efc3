"""From an operator tree to the plan of its change (pure)."""

from trickle.delta import rules as _rules
from trickle.delta.differentiate import differentiate

del _rules

__all__ = ["differentiate"]
