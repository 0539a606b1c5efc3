"""What a gate answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Decision(StrEnum):
    """Whether a refresh goes on."""

    PROCEED = "PROCEED"
    SKIP = "SKIP"
    """Not now: asked again at the next tick."""
    BLOCK = "BLOCK"
    """Not until somebody acts: resets a fuse, resumes the table."""

    @property
    def rank(self) -> int:
        """How strict a decision is; the strictest of several holds."""
        return ("PROCEED", "SKIP", "BLOCK").index(self.value)


@dataclass(frozen=True)
class Verdict:
    """A decision with its reason; the verdict of a whole phase has those of its gates as children."""

    gate: str
    decision: Decision
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Verdict, ...] = ()

    @property
    def proceeds(self) -> bool:
        return self.decision is Decision.PROCEED

    @property
    def decisive(self) -> Verdict:
        """The verdict that the decision comes from: the first child, all the way down, that decided so."""
        for child in self.children:
            if child.decision is self.decision:
                return child.decisive
        return self

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the history."""
        found: dict[str, Any] = {"gate": self.gate, "decision": self.decision.value, "reason": self.reason}
        if self.details:
            found["details"] = dict(self.details)
        if self.children:
            found["children"] = [child.to_json() for child in self.children]
        return found

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Verdict:
        """The inverse of ``to_json``."""
        return Verdict(
            gate=found["gate"],
            decision=Decision(found["decision"]),
            reason=found["reason"],
            details=found.get("details", {}),
            children=tuple(Verdict.from_json(child) for child in found.get("children", ())),
        )

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The verdict in words, one line for each gate."""
        yield f"{'  ' * depth}{self.gate}: {self.decision.value.lower()}" + (f", {self.reason}" if self.reason else "")
        for child in self.children:
            yield from child.lines(depth + 1)


def proceed(gate: str, reason: str = "", **details: Any) -> Verdict:
    """The refresh may go on."""
    return Verdict(gate, Decision.PROCEED, reason, details)


def skip(gate: str, reason: str, **details: Any) -> Verdict:
    """Not in this tick."""
    return Verdict(gate, Decision.SKIP, reason, details)


def block(gate: str, reason: str, **details: Any) -> Verdict:
    """Not until somebody acts."""
    return Verdict(gate, Decision.BLOCK, reason, details)


UNIT = "unit"
"""The gate of a member that waits for another one of its unit."""


def held_together(verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The verdicts of the members of one unit, by their names: when one is held back, the others wait for it.

    >>> held_together({"a": block("fuse", "it is blown"), "b": proceed("admit")})["b"].reason
    'a of its unit is held back by its fuse: it is blown'
    """
    held = next(((name, verdict.decisive) for name, verdict in verdicts.items() if not verdict.proceeds), None)
    if held is None:
        return dict(verdicts)
    name, why = held
    waits = skip(UNIT, f"{name} of its unit is held back by its {why.gate}: {why.reason}", member=name)
    return {m: v if not v.proceeds else together(v.gate, [*v.children, waits]) for m, v in verdicts.items()}


def together(gate: str, children: Sequence[Verdict]) -> Verdict:
    """One verdict of several: the strictest decision holds.

    >>> together("admit", [proceed("status"), skip("schedule", "not due")]).decision
    <Decision.SKIP: 'SKIP'>
    """
    decision = max((child.decision for child in children), key=lambda d: d.rank, default=Decision.PROCEED)
    found = next((child for child in children if child.decision is decision), None)
    reason = "" if found is None or decision is Decision.PROCEED else found.reason
    return Verdict(gate, decision, reason, {}, tuple(children))
