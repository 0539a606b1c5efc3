"""A plan: what computes the change of one stored table.

Steps come first. Each is computed once, held, and used by what follows under its name; one that turns out to be empty
lets everything that depends on it be left out before Spark sees it (``optimize/prune.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trickle.operators import Face, Operator, Scan, Step

OWN = "__trickle_own"
"""The table that a plan keeps, as a table that the plan reads."""

CHANGED = "changed"
"""The step with the change of what a stored table is computed from."""


@dataclass(frozen=True)
class PlanStep:
    """A result that is computed once."""

    name: str
    tree: Operator

    def reference(self) -> Step:
        """The step's rows, for those who use them."""
        return Step(self.name, tuple((name, name) for name in self.tree.columns))


@dataclass(frozen=True)
class Plan:
    """Steps, and the change of a stored table: its columns and the weight.

    With ``located``, also where old rows lie, and whether a row differs from its counterpart in hidden columns only.
    """

    steps: tuple[PlanStep, ...]
    result: Operator
    located: bool = False


def stands_still(empty: Collection[str]) -> bool:
    """Whether a stored table does not change, as these steps of its plan have no rows."""
    return CHANGED in empty


def own(fields: Sequence[tuple[str, str]], *, located: bool = True) -> Scan:
    """The stored table as it was before."""
    return Scan(OWN, tuple(fields), Face.OLD, located=located)
