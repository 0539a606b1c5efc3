"""All gates in their order, in two phases.

A phase stops at the first gate that does not let the refresh go on: facts that only later gates need are then never
gathered, and an idle tick costs next to nothing. Who wants to know everything (``why_not_refreshed``), or insists
(``force``), has all gates asked; the verdict keeps every answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trickle.gates.cut import CutGate
from trickle.gates.diamond import DiamondGate
from trickle.gates.facts import Facts, TableFacts
from trickle.gates.fuse import FuseGate, StagedFuseGate
from trickle.gates.gate import Gate
from trickle.gates.lock import LockGate
from trickle.gates.schedule import ScheduleGate
from trickle.gates.snapshot import SnapshotGate
from trickle.gates.source_gate import SourceGate
from trickle.gates.status import StatusGate
from trickle.gates.upstream import UpstreamGate
from trickle.gates.user import UserGates
from trickle.gates.verdict import Decision, Verdict, together
from trickle.gates.watermark import WatermarkGate

ADMIT: tuple[Gate, ...] = (
    CutGate(),
    StatusGate(),
    LockGate(),
    ScheduleGate(),
    SourceGate(),
    UpstreamGate(),
    FuseGate(),
    WatermarkGate(),
)
"""Asked before anything is computed."""

RELEASE: tuple[Gate, ...] = (StagedFuseGate(), UserGates(), SnapshotGate(), DiamondGate())
"""Asked when the change is staged and not yet committed."""


STATEMENT_ADMIT: tuple[Gate, ...] = (FuseGate(),)
STATEMENT_RELEASE: tuple[Gate, ...] = (StagedFuseGate(), UserGates())
"""Asked about a statement whose change IMMEDIATE stream tables follow. There is nothing to wait for, so the other gates
have no say: the statement is committed with them or refused."""


def admit(table: TableFacts, facts: Facts, *, everything: bool = False, statement: bool = False) -> Verdict:
    """Whether a refresh may begin, or a statement be followed."""
    return ask("admit", STATEMENT_ADMIT if statement else ADMIT, table, facts, everything=everything)


def release(table: TableFacts, facts: Facts, *, statement: bool = False) -> Verdict:
    """Whether a staged change may be committed."""
    return ask("release", STATEMENT_RELEASE if statement else RELEASE, table, facts)


def ask(phase: str, gates: Iterable[Gate], table: TableFacts, facts: Facts, *, everything: bool = False) -> Verdict:
    """The gates one after the other, up to the first that does not let the refresh go on, or all of them."""
    answers: list[Verdict] = []
    for gate in gates:
        answers.append(gate.evaluate(table, facts))
        if not answers[-1].proceeds and not everything and not table.force:
            break
    verdict = together(phase, answers)
    if table.force and not verdict.proceeds:
        return replace(verdict, decision=Decision.PROCEED, reason=f"forced, although {verdict.reason}")
    return verdict
