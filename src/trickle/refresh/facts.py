"""The facts of one stream table for its gates: each gathered when a gate asks, once.

Nothing here runs Spark but ``exact_volume``, which the fuse asks for only when the counts of the log are over its
rating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle.algebra.weights import WEIGHT
from trickle.catalog import history
from trickle.catalog.records import Isolation, Relation, StreamTable
from trickle.changes.between import ChangeBuffer
from trickle.engine import Engine, spark_errors
from trickle.gates.facts import (
    Delta,
    Due,
    FuseFacts,
    FuseRating,
    GatedSource,
    HeldUpstream,
    Lock,
    Path,
    SourceMove,
    TableFacts,
    UnitFacts,
    UserAnswer,
    Volume,
    WatermarkGroup,
)
from trickle.history.failures import is_abandoned
from trickle.lake.changes import consolidate
from trickle.lake.counts import ChangeCount
from trickle.lake.snapshot import open_snapshot
from trickle.lake.staged import staged_change
from trickle.refresh.board import Board, volume_of
from trickle.refresh.making import Made
from trickle.sources.lake import LakePosition


def table_facts(stream: StreamTable, *, tiered: bool, manual: bool, force: bool) -> TableFacts:
    """What gates know of the stream table itself."""
    return TableFacts(
        name=str(stream.relation.name),
        relation_id=stream.relation.id,
        status=stream.status.value,
        populated=stream.populated,
        needs_reinitialize=stream.needs_reinitialize,
        always_refresh=stream.always_refresh,
        last_error=stream.last_error,
        tier=str(stream.options.get("tier", "hot")) if tiered else "hot",
        manual=manual,
        force=force,
    )


@dataclass(frozen=True)
class Gathered:
    """The facts of one stream table. ``sources`` are the tables that it reads; ``cut`` is where they stand.

    A source that is not in the cut belongs to the same unit: how it changes is known when it is staged.
    """

    board: Board
    stream: StreamTable
    sources_read: Sequence[Relation]
    cut: Mapping[int, LakePosition]
    now: datetime
    cut_at: datetime | None = None
    due: Due = field(default_factory=lambda: Due("", due=True))
    unit: UnitFacts = field(default_factory=UnitFacts)
    held: Mapping[int, HeldUpstream] = field(default_factory=dict)
    """Stream tables that were held back in this tick."""
    own_refreshes: frozenset[int] = frozenset()
    """Refreshes in the history that are this one."""
    staged: Mapping[int, Mapping[int, LakePosition]] = field(default_factory=dict)
    """The frontiers of members of the unit that are staged."""
    staged_delta: Delta | None = None
    answers: Callable[[], Sequence[UserAnswer]] = list
    brought: Mapping[int, Made] = field(default_factory=dict)
    """Base tables that a statement is about to change."""

    @cached_property
    def lock(self) -> Lock:
        with self.board.warehouse.catalog.read() as tx:
            running = history.running(tx, self.stream.relation.id)
        for record in running:
            if record.id not in self.own_refreshes and not is_abandoned(self.board.warehouse, record):
                return Lock(f"pid {record.details.get('pid')} on {record.details.get('host')}", record.started_at)
        return Lock()

    @cached_property
    def sources(self) -> Sequence[SourceMove]:
        return [self._move(source) for source in self.sources_read]

    def _move(self, source: Relation) -> SourceMove:
        before, now = self._before(source), self.cut.get(source.id)
        count = ChangeCount(None, None, exact=False)
        if before is not None and now is not None:
            count = self._buffer(source, before, now).count() if before != now else ChangeCount(0, 0, exact=True)
        if source.id in self.brought:
            count = self.brought[source.id].change or count
        return SourceMove(
            name=str(source.name),
            relation_id=source.id,
            before=None if before is None else str(before),
            now="staged" if now is None else str(now),
            inserted=count.inserted,
            deleted=count.deleted,
            exact=count.exact,
            is_stream_table=self.board.lineage.is_stream_table(source.id),
        )

    def _before(self, source: Relation) -> LakePosition | None:
        text = self.stream.frontier.get(source.id)
        return None if text is None else LakePosition.parse(text)

    def _buffer(self, source: Relation, before: LakePosition, now: LakePosition) -> ChangeBuffer:
        return ChangeBuffer(self.board.warehouse.location_of(source), before, now)

    @cached_property
    def gated_sources(self) -> Sequence[GatedSource]:
        if not self.board.gated:
            return []
        upstream = self.board.lineage.upstream(self.stream.relation.id)
        return [
            GatedSource(self.board.lineage.name(source), gate.gated_at, gate.gated_by, gate.reason)
            for source, gate in self.board.gated.items()
            if source in upstream
        ]

    @property
    def held_upstream(self) -> Sequence[HeldUpstream]:
        return [self.held[source.id] for source in self.sources_read if source.id in self.held]

    @cached_property
    def fuses(self) -> Sequence[FuseFacts]:
        own = self._fuse(self.stream.relation.id, self.board.rating(self.stream))
        found = [own]
        upstream = self.board.lineage.upstream(self.stream.relation.id) if self.board.fuses else set()
        direct = {source.id for source in self.sources_read}
        for relation_id, fuse in sorted(self.board.fuses.items()):
            if relation_id in upstream and not self.board.lineage.is_stream_table(relation_id):
                # Further up, those who read the source itself are the ones to count what waits.
                rating = self.board.source_rating(fuse) if relation_id in direct else FuseRating()
                found.append(self._fuse(relation_id, rating))
        return found

    def _fuse(self, owner: int, rating: FuseRating) -> FuseFacts:
        fuse = self.board.fuses.get(owner)
        is_own = owner == self.stream.relation.id
        adaptive = rating.mode == "adaptive"
        return FuseFacts(
            owner=self.board.lineage.name(owner),
            rating=rating,
            # Before a statement nothing waits: what counts is its own change.
            blown=self.board.is_blown(owner) and not self.brought,
            blown_at=None if fuse is None else fuse.blown_at,
            blow_reason=None if fuse is None else fuse.blow_reason,
            passes_once=self.board.passes_once(owner, self.stream.relation.id),
            samples=list(self._volumes(owner, rating)) if adaptive else (),
            delta_samples=list(self._deltas(rating)) if adaptive and is_own else (),
            rows=self._rows(owner) if rating.max_ratio is not None else 0,
            table_rows=self._table_rows() if rating.max_ratio is not None and is_own else 0,
        )

    def _volumes(self, owner: int, rating: FuseRating) -> Iterator[Volume]:
        """What waited before past refreshes of this table: of the whole table, or of one source."""
        name = self.board.lineage.name(owner)
        for record in self.board.past(self.stream.relation.id, rating.window_size):
            counted = record.details.get("sources")
            if isinstance(counted, Mapping):
                wanted = counted.values() if owner == self.stream.relation.id else [counted.get(name)]
                parts = [volume for one in wanted if (volume := volume_of(one)) is not None]
                if parts:
                    yield Volume(sum(p.inserted for p in parts), sum(p.deleted for p in parts))

    def _deltas(self, rating: FuseRating) -> Iterator[Volume]:
        for record in self.board.past(self.stream.relation.id, rating.window_size):
            delta = volume_of(record.details.get("delta"))
            if delta is not None:
                yield delta

    def _rows(self, owner: int) -> int:
        wanted = [s for s in self.sources_read if owner in (self.stream.relation.id, s.id)]
        return sum(self._live_rows(source, self._before(source)) for source in wanted)

    def _live_rows(self, source: Relation, position: LakePosition | None) -> int:
        if position is None:
            return 0
        snapshot = open_snapshot(self.board.warehouse.location_of(source), position.version)
        return sum(file.live_rows or 0 for file in snapshot.files)

    def _table_rows(self) -> int:
        if self.stream.version is None:
            return 0
        snapshot = open_snapshot(self.board.warehouse.location_of(self.stream.relation), self.stream.version)
        return sum(file.live_rows or 0 for file in snapshot.files)

    def volume(self, owner: str) -> Volume | None:
        moves = self._waiting(owner)
        if any(move.inserted is None or move.deleted is None for move in moves):
            return None
        return Volume(sum(move.inserted or 0 for move in moves), sum(move.deleted or 0 for move in moves))

    def _waiting(self, owner: str) -> list[SourceMove]:
        wanted = [m for m in self.sources if owner in (str(self.stream.relation.name), m.name)]
        known = self.cut.keys() | self.brought.keys()
        return [m for m in wanted if m.relation_id in known and m.before is not None and m.moved]

    def exact_volume(self, owner: str) -> Volume:
        inserted = deleted = 0
        by_id = {source.id: source for source in self.sources_read}
        for move in self._waiting(owner):
            if move.exact and move.inserted is not None and move.deleted is not None:
                one = Volume(move.inserted, move.deleted)
            else:
                one = self._counted(by_id[move.relation_id])
            inserted, deleted = inserted + one.inserted, deleted + one.deleted
        return Volume(inserted, deleted)

    def _counted(self, source: Relation) -> Volume:
        """The net change of a source, counted by reading it."""
        engine = self.board.warehouse.engine
        with spark_errors(), engine.tuned("change"):
            rows = self._waiting_rows(engine, source)
            weight = F.col(WEIGHT)
            found = rows.agg(
                F.sum(F.when(weight > 0, weight)).alias("i"), F.sum(F.when(weight < 0, -weight)).alias("d")
            ).collect()[0]
        return Volume(int(found["i"] or 0), int(found["d"] or 0))

    def _waiting_rows(self, engine: Engine, source: Relation) -> DataFrame:
        made = self.brought.get(source.id)
        if made is not None and made.own is not None:
            return consolidate(staged_change(engine, made.snapshot, made.own, made.snapshot.schema.names))
        before = self._before(source)
        assert before is not None
        return self._buffer(source, before, self.cut[source.id]).rows(engine)

    @cached_property
    def watermark_groups(self) -> Sequence[WatermarkGroup]:
        return self.board.watermark_groups(self.board.lineage.base_sources(self.stream.relation.id))

    @cached_property
    def paths(self) -> Sequence[Path]:
        is_loose = self.stream.options.get("diamond_consistency") == "none"
        if is_loose and self.unit.isolation != Isolation.REPEATABLE_READ:
            return []
        found = []
        for source in self.sources_read:
            name = str(source.name)
            if not self.board.lineage.is_stream_table(source.id):
                found.append(Path(name, name, str(self.cut[source.id])))
                continue
            for base, position in self.reflected(source.id, self.cut.get(source.id)).items():
                found.append(Path(self.board.lineage.name(base), name, str(position)))
        return found

    def reflected(
        self, stream_id: int, version: LakePosition | None, readers: frozenset[int] = frozenset()
    ) -> dict[int, LakePosition]:
        """The positions of base sources that a version of a stream table reflects, as far as that is known.

        ``readers`` are on the way to it: on a cycle they come back, and have been looked at.
        """
        found: dict[int, LakePosition] = {}
        way = readers | {stream_id}
        for source, position in self._frontier(stream_id, version).items():
            if source not in self.board.lineage.tables or source in way:
                continue
            below = {source: position}
            if self.board.lineage.is_stream_table(source):
                below = self.reflected(source, None if source in self.staged else position, way)
            for base, at in below.items():
                # The older one: what is not reflected everywhere is not reflected.
                found[base] = min(found.get(base, at), at, key=lambda p: p.version)
        return found

    def _frontier(self, stream_id: int, version: LakePosition | None) -> Mapping[int, LakePosition]:
        if stream_id in self.staged:
            return self.staged[stream_id]
        stream = self.board.stream(stream_id)
        texts: Mapping[int, str] = stream.frontier
        if version is not None and version.version != stream.version:
            texts = self._past_frontier(stream_id, version.version)
        return {source: LakePosition.parse(text) for source, text in texts.items()}

    def _past_frontier(self, stream_id: int, version: int) -> Mapping[int, str]:
        with self.board.warehouse.catalog.read() as tx:
            past = history.recent(tx, stream_id)
        found = next((r for r in past if r.version_after == version and r.frontier), None)
        return {} if found is None or found.frontier is None else {int(s): p for s, p in found.frontier.items()}

    @property
    def delta(self) -> Delta:
        assert self.staged_delta is not None, "only in the release phase"
        return self.staged_delta

    @cached_property
    def user_answers(self) -> Sequence[UserAnswer]:
        return self.answers()
