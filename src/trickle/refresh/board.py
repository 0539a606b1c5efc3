"""The state of all gates, read from the catalog once for a refresh or a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from trickle.catalog import fuses, history, source_gates, streams, user_gates, watermarks
from trickle.catalog.records import (
    Action,
    Fuse,
    FuseState,
    Outcome,
    RefreshRecord,
    SourceGate,
    StreamTable,
    UserGate,
    WatermarkGroupRecord,
    WatermarkRecord,
)
from trickle.gates.facts import FuseRating, Volume, Watermark, WatermarkGroup
from trickle.gates.watermark import held_position
from trickle.refresh.lineage import Lineage, load_lineage
from trickle.settings import Settings
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse

_REMEMBERED = 4
"""Refreshes that are looked at for each sample that is wanted: some of them had nothing to do."""


@dataclass(frozen=True)
class Board:
    """What gates stand on. Each part is read when it is first asked for, and stands from then on."""

    warehouse: Warehouse

    @cached_property
    def settings(self) -> Settings:
        with self.warehouse.catalog.read() as tx:
            return self.warehouse.settings(tx)

    @cached_property
    def lineage(self) -> Lineage:
        with self.warehouse.catalog.read() as tx:
            return load_lineage(tx)

    @cached_property
    def fuses(self) -> Mapping[int, Fuse]:
        with self.warehouse.catalog.read() as tx:
            return {fuse.relation_id: fuse for fuse in fuses.listing(tx)}

    @cached_property
    def gated(self) -> Mapping[int, SourceGate]:
        """Sources that are being loaded."""
        with self.warehouse.catalog.read() as tx:
            return {gate.source_id: gate for gate in source_gates.listing(tx) if gate.gated}

    @cached_property
    def watermarks(self) -> Mapping[int, WatermarkRecord]:
        with self.warehouse.catalog.read() as tx:
            return {one.source_id: one for one in watermarks.listing(tx)}

    @cached_property
    def _groups(self) -> Sequence[WatermarkGroupRecord]:
        with self.warehouse.catalog.read() as tx:
            return watermarks.groups(tx)

    @cached_property
    def user_gates(self) -> Sequence[UserGate]:
        with self.warehouse.catalog.read() as tx:
            return user_gates.listing(tx)

    def watermark_groups(self, sources: set[int]) -> list[WatermarkGroup]:
        """The groups that have one of these sources."""
        return [self._group(group) for group in self._groups if sources & set(group.source_ids)]

    def _group(self, group: WatermarkGroupRecord) -> WatermarkGroup:
        return WatermarkGroup(
            group.name,
            timedelta(seconds=group.tolerance_seconds),
            group.mode,
            [self._watermark(source) for source in group.source_ids],
        )

    def _watermark(self, source: int) -> Watermark:
        name, found = self.lineage.name(source), self.watermarks.get(source)
        if found is None:
            return Watermark(name, None)
        return Watermark(name, found.watermark, found.position, found.updated_at)

    @cached_property
    def caps(self) -> Mapping[int, LakePosition | None]:
        """Sources that are held back, with the position beyond which nothing is read; None for: not at all."""
        found: dict[int, LakePosition | None] = {}
        for group in self._groups:
            if group.mode != "hold_back":
                continue
            members = self._group(group)
            for source in group.source_ids:
                position = held_position(members, self._history(source))
                cap = None if position is None else LakePosition.parse(position)
                found[source] = _earlier(found[source], cap) if source in found else cap
        return found

    def _history(self, source: int) -> list[Watermark]:
        with self.warehouse.catalog.read() as tx:
            past = watermarks.history(tx, source)
        return [Watermark(self.lineage.name(source), one.watermark, one.position, one.updated_at) for one in past]

    def rating(self, stream: StreamTable) -> FuseRating:
        """The rating of a stream table's own fuse, from its options and the settings."""
        options = stream.options
        return _rating(
            {name.removeprefix("fuse_"): value for name, value in options.items() if name.startswith("fuse")},
            self.settings,
        )

    def source_rating(self, fuse: Fuse) -> FuseRating:
        """The rating of a source's fuse."""
        given = {
            "fuse": fuse.mode.lower(),
            "ceiling": fuse.ceiling,
            "max_ratio": fuse.max_ratio,
            "sensitivity": fuse.sensitivity,
            "window_size": fuse.window_size,
            "baseline": fuse.baselines.get("kind"),
        }
        return _rating({name: value for name, value in given.items() if value is not None}, self.settings)

    def is_blown(self, relation_id: int) -> bool:
        fuse = self.fuses.get(relation_id)
        return fuse is not None and fuse.state is FuseState.BLOWN

    def passes_once(self, owner: int, relation_id: int) -> bool:
        """Whether a fuse was reset to let the changes through, and no refresh of the stream table came since."""
        fuse = self.fuses.get(owner)
        if fuse is None or fuse.last_reset_at is None:
            return False
        last = self._completed(relation_id, 1)
        return fuse.passes_once(last[0].ended_at if last else None)

    def past(self, relation_id: int, window: int) -> list[RefreshRecord]:
        """The last refreshes that computed something, oldest first."""
        return self._completed(relation_id, window)[::-1]

    def _completed(self, relation_id: int, wanted: int) -> list[RefreshRecord]:
        computed = (Action.FULL, Action.DIFFERENTIAL, Action.REINITIALIZE)
        with self.warehouse.catalog.read() as tx:
            found = history.recent(tx, relation_id, limit=_REMEMBERED * wanted + 10)
        done = [r for r in found if r.status is Outcome.COMPLETED and r.action in computed]
        return done[:wanted]

    def stream(self, relation_id: int) -> StreamTable:
        with self.warehouse.catalog.read() as tx:
            return streams.by_id(tx, relation_id)


def volume_of(found: object) -> Volume | None:
    """A volume as the history keeps it."""
    if not isinstance(found, Mapping):
        return None
    inserted, deleted = found.get("inserted"), found.get("deleted")
    return Volume(inserted, deleted) if isinstance(inserted, int) and isinstance(deleted, int) else None


def _earlier(one: LakePosition | None, other: LakePosition | None) -> LakePosition | None:
    if one is None or other is None:
        return None
    return min(one, other, key=lambda position: position.version)


def _rating(given: Mapping[str, object], settings: Settings) -> FuseRating:
    def number(name: str) -> float | None:
        value = given.get(name)
        return float(value) if isinstance(value, int | float) else None

    mode = given.get("fuse", settings.fuse_default)
    ceiling, window, sensitivity = number("ceiling"), number("window_size"), number("sensitivity")
    return FuseRating(
        mode=str(mode),
        ceiling=None if ceiling is None else int(ceiling),
        max_ratio=number("max_ratio"),
        sensitivity=FuseRating.sensitivity if sensitivity is None else sensitivity,
        window_size=FuseRating.window_size if window is None else int(window),
        baseline=str(given.get("baseline", FuseRating.baseline)),
        cold_start_ceiling=settings.fuse_cold_start_ceiling,
    )
