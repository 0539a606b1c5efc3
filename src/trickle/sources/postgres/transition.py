"""From triggers to WAL and back, for all tables of a database at once, without loss and without anything twice.

Both captures can say the same thing: "the lake holds what this snapshot sees". That is what a position of trigger
capture is, and what WAL capture starts from after a load. So a transition is

    arm the new capture beside the old one; let A be what is visible then
    ingest through the old capture up to a snapshot S that sees all of A
    replace each position by the new capture's text for S, in one transaction of the catalog
    disarm the old capture

Up to the replacement the old capture is the one that counts, from then on the new one; each sees every change while it
counts. A process that dies before it leaves both armed: the transition is stuck, holds back WAL at the server, and is
rolled back by disarming the new capture. One that dies after it leaves the old capture armed, and disarming it again
ends the transition.

When the slot is lost there is nothing to ingest up to. ``fall_back`` arms triggers, and the tables are loaded anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

from trickle.errors import InternalError
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable
from trickle.sources.postgres.capture import Capture, position_of
from trickle.sources.postgres.positions import MODE as WAL
from trickle.sources.postgres.positions import Snapshot
from trickle.sources.postgres.wal import WalCapture

TRIGGER = "trigger"


class Phase(StrEnum):
    """Which capture of a database counts, and whether another one is being armed."""

    TRIGGER = "TRIGGER"
    TRANSITIONING = "TRANSITIONING"
    WAL = "WAL"


class Step(StrEnum):
    """What brings a database nearer to the capture that it should have."""

    STAY = "stay"
    BEGIN = "begin"
    SWITCH = "switch"
    ROLL_BACK = "roll back"


@dataclass(frozen=True)
class Facts:
    """What the next step depends on."""

    phase: Phase
    wants_wal: bool
    obstacles: tuple[str, ...] = ()
    """Why tables cannot be captured from the WAL, in words."""
    is_covered: bool = False
    """Whether every table has been ingested up to a snapshot that sees all of what was visible after arming."""
    age: timedelta = timedelta()
    """How long the transition has been going on."""
    patience: timedelta = timedelta(hours=1)
    """How long it may."""


@dataclass(frozen=True)
class Decision:
    """A step, and why, in words."""

    step: Step
    reason: str


def decide(facts: Facts) -> Decision:
    """The next step from triggers to WAL. Pure.

    >>> decide(Facts(Phase.TRIGGER, wants_wal=True, obstacles=("t has no key",)))
    Decision(step=<Step.STAY: 'stay'>, reason='stays with triggers: t has no key')
    """
    match facts.phase:
        case Phase.WAL:
            return Decision(Step.STAY, "captured from the WAL")
        case Phase.TRIGGER if not facts.wants_wal:
            return Decision(Step.STAY, "captured by triggers, as asked for")
        case Phase.TRIGGER if facts.obstacles:
            return Decision(Step.STAY, f"stays with triggers: {'; '.join(facts.obstacles)}")
        case Phase.TRIGGER:
            return Decision(Step.BEGIN, "every table can be captured from the WAL")
        case Phase.TRANSITIONING if not facts.wants_wal:
            return Decision(Step.ROLL_BACK, "triggers are asked for")
        case Phase.TRANSITIONING if facts.obstacles:
            return Decision(Step.ROLL_BACK, "; ".join(facts.obstacles))
        case Phase.TRANSITIONING if facts.is_covered:
            return Decision(Step.SWITCH, "the lake has everything from before the slot")
        case Phase.TRANSITIONING if facts.age > facts.patience:
            return Decision(Step.ROLL_BACK, f"it has been going on for {facts.age}")
        case Phase.TRANSITIONING:
            return Decision(Step.STAY, "waits for an ingest up to what was there when the slot was made")
        case _:
            assert_never(facts.phase)


def obstacles(wal: WalCapture, tables: Sequence[SourceTable]) -> tuple[str, ...]:
    """Why tables cannot be captured from the WAL; each reason once."""
    found = (wal.obstacle(table) for table in tables)
    return tuple(dict.fromkeys(one.reason for one in found if one is not None))


def begin(connection: Connection, new: Capture, tables: Sequence[SourceTable]) -> str:
    """Arm the new capture beside the old one. Returns what is visible then, as a snapshot's text."""
    for table in tables:
        new.arm(table)
    found = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    if found is None:
        raise InternalError("the server has no snapshot")
    return str(found[0])


def is_covered(armed: str, positions: Mapping[int, str]) -> bool:
    """Whether trigger capture has brought every table to where WAL capture can go on."""
    before = Snapshot.parse(armed)
    snapshots = (Snapshot.parse(position_of(position, TRIGGER)) for position in positions.values())
    return all(snapshot.sees_all_of(before) for snapshot in snapshots)


def switched(wal: WalCapture, armed: str, positions: Mapping[int, str]) -> dict[int, str]:
    """The positions of WAL capture that say what those of trigger capture say."""
    if not is_covered(armed, positions):
        raise InternalError("a table is not as far as WAL capture begins")
    return {oid: wal.loaded(position_of(position, TRIGGER)) for oid, position in positions.items()}


def last_of_wal(wal: WalCapture, armed: str, triggers: Capture) -> tuple[str, str]:
    """From WAL back to triggers, which are armed by now: the position up to which WAL capture is to be ingested once
    more, and the text of trigger capture that says the same.
    """
    position = triggers.position()
    snapshot = position_of(position, TRIGGER)
    if not Snapshot.parse(snapshot).sees_all_of(Snapshot.parse(armed)):
        raise InternalError("a snapshot is older than one that was taken before it")
    return wal.loaded(snapshot), position


def disarm(capture: Capture, tables: Sequence[SourceTable]) -> None:
    """Leave nothing of a capture: of the new one, to give up a transition; of the old one, to end it."""
    for table in tables:
        capture.disarm(table)


def fall_back(wal: WalCapture, triggers: Capture, tables: Sequence[SourceTable]) -> None:
    """The slot is lost: arm triggers and leave nothing of WAL capture. The tables must be loaded anew."""
    for table in tables:
        triggers.arm(table)
    disarm(wal, tables)


def phase_of(positions: Mapping[int, str], *, is_transitioning: bool) -> Phase:
    """Which capture counts, by the positions, which are all of one capture."""
    modes = {position.partition(":")[0] for position in positions.values()}
    if modes == {WAL}:
        return Phase.WAL
    if modes - {TRIGGER}:
        raise InternalError("tables of one database have different captures", detail=", ".join(sorted(modes)))
    return Phase.TRANSITIONING if is_transitioning else Phase.TRIGGER
