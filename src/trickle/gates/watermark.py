"""Watermarks: the loader of a source says how far its data is complete; sources of a group must be complete together.

A group is *aligned* when all its members have a watermark and none is ahead of another by more than the tolerance:
``max - min <= tolerance``. The *effective* watermark, up to which every member is complete, is the smallest. It is
unknown while one member has none: then nothing is complete everywhere.

Mode ``gate`` waits until the group is aligned. Mode ``hold_back`` never waits; each member is read up to the newest
position that was recorded with a watermark not after the effective one, so that what is read is complete everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trickle.gates.facts import Facts, TableFacts, Watermark, WatermarkGroup
from trickle.gates.verdict import Verdict, proceed, skip, together
from trickle.gates.words import moment, stamp

HOLD_BACK = "hold_back"


@dataclass(frozen=True)
class Alignment:
    """How the watermarks of a group stand to each other."""

    aligned: bool
    effective: datetime | None
    """Up to where every member is complete; None while a member has no watermark."""
    lag: timedelta | None
    """From the slowest to the fastest member."""
    reason: str
    """The same in words."""
    missing: tuple[str, ...] = ()
    """Members without a watermark."""


def alignment(group: WatermarkGroup) -> Alignment:
    """How the members of a group stand to each other; a group without members is aligned."""
    missing = tuple(member.source for member in group.members if member.watermark is None)
    known = sorted((member.watermark, member.source) for member in group.members if member.watermark is not None)
    if missing:
        return Alignment(False, None, None, f"no watermark yet for {', '.join(missing)} of group {group.name}", missing)
    if not known:
        return Alignment(True, None, None, f"group {group.name} has no members")
    (low, slowest), (high, fastest) = known[0], known[-1]
    lag = high - low
    if lag <= group.tolerance:
        return Alignment(True, low, lag, f"group {group.name} is complete up to {moment(low)}")
    reason = (
        f"watermarks of group {group.name} are {lag} apart, over the tolerance of {group.tolerance}: "
        f"{slowest} is at {moment(low)}, {fastest} at {moment(high)}"
    )
    return Alignment(False, low, lag, reason)


def held_positions(group: WatermarkGroup, history: Mapping[str, Sequence[Watermark]]) -> dict[str, str | None]:
    """Up to where each member may be read in mode ``hold_back``; ``history`` by the name of the source."""
    return {member.source: held_position(group, history.get(member.source, ())) for member in group.members}


def held_position(group: WatermarkGroup, said: Sequence[Watermark]) -> str | None:
    """Up to where one member may be read in mode ``hold_back``; None for no further than it was read already.

    ``said`` is what the member's loader said over time, oldest first. Watermarks never go back, so the newest position
    is the one with the largest watermark.
    """
    effective = alignment(group).effective
    newest: tuple[datetime, str] | None = None
    for one in said:
        if one.watermark is None or one.position is None or effective is None or one.watermark > effective:
            continue
        if newest is None or one.watermark >= newest[0]:
            newest = one.watermark, one.position
    return None if newest is None else newest[1]


class WatermarkGate:
    """Whether the sources of each group are complete together."""

    name = "watermark"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        answers = [_answer(self.name, group) for group in facts.watermark_groups]
        if not answers:
            return proceed(self.name, "no source is in a watermark group")
        return answers[0] if len(answers) == 1 else together(self.name, answers)


def _answer(gate: str, group: WatermarkGroup) -> Verdict:
    found = alignment(group)
    details = {
        "group": group.name,
        "mode": group.mode,
        "effective_watermark": stamp(found.effective),
        "lag_seconds": None if found.lag is None else found.lag.total_seconds(),
        "tolerance_seconds": group.tolerance.total_seconds(),
        "missing": list(found.missing),
        "watermarks": {member.source: stamp(member.watermark) for member in group.members},
    }
    if group.mode == HOLD_BACK:
        up_to = "no further than before" if found.effective is None else f"up to {moment(found.effective)}"
        return proceed(gate, f"group {group.name} is read {up_to}", **details)
    return proceed(gate, found.reason, **details) if found.aligned else skip(gate, found.reason, **details)
