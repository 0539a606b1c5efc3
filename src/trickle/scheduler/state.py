"""What a tick looks at: definitions, where each stream table stands, and the cut of all base sources.

A tick must cost next to nothing when nothing changed, with a thousand stream tables too. So definitions are kept
between ticks (``definitions.py``), stream tables are read as plain rows, and a position takes two look-ups in the
folder of a log: no Spark, and no listing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from trickle.catalog import fuses, history, pins, scheduling, streams
from trickle.catalog.records import Fuse, FuseState, RefreshRecord, Relation, Schedulable, SchedulerState
from trickle.errors import TrickleError
from trickle.gates.facts import WatermarkGroup
from trickle.history.failures import is_abandoned
from trickle.lake.log import commit_path
from trickle.publish.following import Patience
from trickle.refresh.board import Board
from trickle.refresh.lineage import Lineage
from trickle.refresh.members import capped
from trickle.scheduler.definitions import Definitions, load_definitions
from trickle.settings import Settings
from trickle.sources.lake import LakePosition, current
from trickle.warehouse import Warehouse

_LISTERS = 16
"""Look-ups at once on an object store, where each one takes a round trip."""


@dataclass(frozen=True)
class TickBoard(Board):
    """The state of the gates in one tick. What the tick knows already is not read again."""

    definitions: Definitions

    @cached_property
    def settings(self) -> Settings:
        return self.definitions.settings

    @cached_property
    def lineage(self) -> Lineage:
        return self.definitions.lineage


@dataclass
class Memory:
    """What a scheduler remembers from tick to tick. Losing it costs time and nothing else."""

    definitions: Definitions | None = None
    positions: dict[int, LakePosition] = field(default_factory=dict)
    """Where each base source stood."""
    factors: dict[int, float] = field(default_factory=dict)
    """By how much the schedule of a stream table is stretched because it cannot keep it."""
    computed: dict[int, tuple[datetime, datetime]] = field(default_factory=dict)
    """When a stream table was marked as fresh without being computed, and when it had last been computed."""
    said: dict[int, str] = field(default_factory=dict)
    """Why a stream table was held back when that was last entered in the history."""
    alerted: set[tuple[str, int]] = field(default_factory=set)
    """Alerts that were raised and whose cause has not passed."""
    unfilled: dict[int, float] = field(default_factory=dict)
    """When a stream table to be filled or rebuilt was first seen."""

    addresses: dict[int, str] = field(default_factory=dict, repr=False)
    """Of attached databases; they may hold passwords."""
    resting: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Attached databases that did not answer: until when they are left alone, and for how long."""
    patience: Patience = field(default_factory=Patience)
    """Publications that failed."""
    settling: Patience = field(default_factory=Patience)
    """Attached databases in which others worked when something was to be removed."""
    polling: Patience = field(default_factory=Patience)
    """Polled sources that could not be read."""

    def keep(self, definitions: Definitions) -> None:
        """Take new definitions, and forget what is about stream tables that are gone."""
        self.definitions = definitions
        for kept in (self.factors, self.computed, self.said):
            for gone in kept.keys() - definitions.dag.streams.keys():
                del kept[gone]


@dataclass(frozen=True)
class State:
    """Everything a tick decides from. The same for the whole tick."""

    now: datetime
    told: SchedulerState
    definitions: Definitions
    tables: Mapping[int, Schedulable]
    cut: Mapping[int, LakePosition]
    """Base sources; without those that cannot be looked at."""
    here: Mapping[int, str]
    """Where every source stands, as frontiers spell it: base sources and stream tables that are filled."""
    moved: Mapping[int, frozenset[int]]
    """The sources of each stream table that do not stand where it read them."""
    blown: Mapping[int, Fuse]
    fused: frozenset[int]
    """Relations whose fuse has a state or a rating of its own."""
    running: Mapping[int, RefreshRecord]
    """Refreshes under way, in this process or in others."""
    factors: Mapping[int, float]
    since: Mapping[int, datetime]
    """When stream tables were last computed, where they have rested since."""
    board: TickBoard
    watermarked: Sequence[tuple[frozenset[int], WatermarkGroup]] = ()
    """The watermark groups that wait until they are aligned, with their sources."""
    left_alone: frozenset[int] = frozenset()
    """Stream tables that others are about to fill."""

    def is_stale(self, table: int) -> bool:
        """Whether a stream table has something to compute by itself."""
        found = self.tables[table]
        return not found.populated or found.needs_reinitialize or found.always_refresh or bool(self.moved[table])


def load_state(
    warehouse: Warehouse, memory: Memory, now: datetime, *, rested: bool = False, settle: float = 0
) -> State:
    """Look at everything once.

    ``rested``: durations count from when a stream table was last computed, and not from when it was last found to have
    nothing to do; what has rested long enough is refreshed as soon as its sources change. ``settle``: seconds for which
    a stream table that is to be filled is left to whoever made it.
    """
    with warehouse.catalog.read() as tx:
        told = scheduling.state(tx)
        known = memory.definitions
        if known is None or known.number != told.ddl_number:
            known = load_definitions(warehouse, tx, told.ddl_number, known)
            memory.keep(known)
        streaming = streams.schedulable(tx)
        tables = {table.id: table for table in streaming if table.id in known.dag.streams}
        found = fuses.listing(tx)
        pinned = {table.id: table.version for table in streaming if table.id in known.pinned}
        pinned |= {relation: pin.version for relation, pin in pins.of(tx).items()} if known.pinned else {}
        running = {r.relation_id: r for r in history.running(tx) if not is_abandoned(warehouse, r)}
    board = TickBoard(warehouse, known)
    cut = _look(known, memory, tables.values(), pinned)
    here = _here(known, tables, cut)
    return State(
        now=now,
        told=told,
        definitions=known,
        tables=tables,
        cut=cut,
        here=here,
        moved=_moved(known, tables, here, cut, board.caps),
        blown={fuse.relation_id: fuse for fuse in found if fuse.state is FuseState.BLOWN},
        fused=frozenset(fuse.relation_id for fuse in found),
        running=running,
        factors=dict(memory.factors),
        since=_rested(memory, tables) if rested else {},
        board=board,
        watermarked=_watermarked(known, board),
        left_alone=_settling(memory, tables, settle),
    )


def _watermarked(known: Definitions, board: TickBoard) -> list[tuple[frozenset[int], WatermarkGroup]]:
    return [
        (frozenset(declared.source_ids), group)
        for declared in known.watermark_groups
        for group in board.watermark_groups(set(declared.source_ids))
        if group.name == declared.name and group.mode == "gate"
    ]


def _settling(memory: Memory, tables: Mapping[int, Schedulable], seconds: float) -> frozenset[int]:
    now = time.monotonic()
    unfilled = [table.id for table in tables.values() if not table.populated or table.needs_reinitialize]
    memory.unfilled = {table: memory.unfilled.get(table, now) for table in unfilled}
    return frozenset(table for table, since in memory.unfilled.items() if now - since < seconds)


def _look(
    known: Definitions, memory: Memory, tables: Iterable[Schedulable], pinned: Mapping[int, int | None]
) -> dict[int, LakePosition]:
    """Where every base source stands now: the cut."""
    for table in tables:
        for source, position in table.frontier.items():
            if source not in memory.positions and source in known.places:
                memory.positions[source] = LakePosition.parse(position)
    logged = [relation for relation in known.base if relation.id not in pinned]
    near = [relation for relation in logged if known.places[relation.id].is_local]
    far = [relation for relation in logged if not known.places[relation.id].is_local]
    found = [_position(known, memory, relation) for relation in near]
    found += [(r.id, _pinned(r, pinned[r.id])) for r in known.base if r.id in pinned]
    if far:
        with ThreadPoolExecutor(min(_LISTERS, len(far))) as pool:
            found += pool.map(lambda relation: _position(known, memory, relation), far)
    memory.positions = {source: position for source, position in found if position is not None}
    return dict(memory.positions)


def _pinned(relation: Relation, version: int | None) -> LakePosition | None:
    return None if version is None else LakePosition(relation.uid, version)


def _position(known: Definitions, memory: Memory, relation: Relation) -> tuple[int, LakePosition | None]:
    before, place = memory.positions.get(relation.id), known.places[relation.id]
    if before is not None and before.uid == relation.uid and place.is_local and _stands(place.uri, before):
        return relation.id, before
    # A source that is gone is no reason not to look at the others: the refresh that reads it says what is wrong.
    with suppress(TrickleError, OSError):
        return relation.id, current(relation, place, None, before)
    return relation.id, None


def _stands(folder: str, before: LakePosition) -> bool:
    """Whether a table in a local folder stands where it stood: two look-ups without objects, as there may be many."""
    try:
        found = os.stat(f"{folder}/{commit_path(before.version)}")  # noqa: PTH116 - a Path costs four times the look-up
    except OSError:
        return False
    if before.stamp and before.stamp != f"{found.st_size:x}.{found.st_mtime_ns // 1_000_000:x}":
        return False
    return not os.path.exists(f"{folder}/{commit_path(before.version + 1)}")  # noqa: PTH110 - as above


def _here(known: Definitions, tables: Mapping[int, Schedulable], cut: Mapping[int, LakePosition]) -> dict[int, str]:
    here = {source: str(position) for source, position in cut.items()}
    for table in tables.values():
        if table.version is not None:
            here[table.id] = str(LakePosition(known.lineage.tables[table.id].uid, table.version))
    return here


def _moved(
    known: Definitions,
    tables: Mapping[int, Schedulable],
    here: Mapping[int, str],
    cut: Mapping[int, LakePosition],
    caps: Mapping[int, LakePosition | None],
) -> dict[int, frozenset[int]]:
    return {
        table.id: frozenset(
            source
            for source in known.dag.streams[table.id].reads | table.frontier.keys()
            if _held(source, table, here.get(source), cut, caps) != table.frontier.get(source)
        )
        for table in tables.values()
    }


def _held(
    source: int,
    table: Schedulable,
    here: str | None,
    cut: Mapping[int, LakePosition],
    caps: Mapping[int, LakePosition | None],
) -> str | None:
    """Where a source stands for one stream table: not beyond what is complete."""
    if source not in caps or source not in cut:
        return here
    before = table.frontier.get(source)
    return str(capped(cut[source], None if before is None else LakePosition.parse(before), source, caps))


def _rested(memory: Memory, tables: Mapping[int, Schedulable]) -> dict[int, datetime]:
    return {
        table: computed
        for table, (marked, computed) in memory.computed.items()
        if table in tables and tables[table].last_refresh_at == marked
    }
