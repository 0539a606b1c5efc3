"""A world for the pure part of the scheduler: names and positions, no catalog and no clock.

Stream tables were all refreshed at the beginning (``START``) and read their sources at position 1; a source that
``moved`` stands at 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from trickle.algebra.names import TableName
from trickle.catalog.records import (
    Fuse,
    FuseState,
    Kind,
    RefreshMode,
    Relation,
    Schedulable,
    SchedulerState,
    SourceGate,
    Status,
)
from trickle.dag.dag import build
from trickle.dag.streams import Group, Stream
from trickle.dag.units import Unit
from trickle.refresh.lineage import Lineage
from trickle.scheduler.definitions import Definitions
from trickle.scheduler.schedules import Scheduled, effective_schedules
from trickle.scheduler.state import State, TickBoard
from trickle.scheduler.tick import Choice, Ended, Go, Hold, Plan, Rest, decide, held_as, plan
from trickle.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class World:
    """Stream tables by name with what they read; everything else by name too."""

    reads: Mapping[str, Collection[str]]
    schedules: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    groups: Iterable[Group[str]] = ()
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        everything = {*self.reads, *(source for sources in self.reads.values() for source in sources)}
        self.ids = {name: number for number, name in enumerate(sorted(everything), 1)}
        self.names = {number: name for name, number in self.ids.items()}

    def state(
        self,
        after: float = 0,
        *,
        moved: Collection[str] = (),
        suspended: Collection[str] = (),
        unfilled: Collection[str] = (),
        blown: Collection[str] = (),
        gated: Collection[str] = (),
        rested: Mapping[str, float] | None = None,
        left_alone: Collection[str] = (),
        factors: Mapping[str, float] | None = None,
        refreshed: Mapping[str, float] | None = None,
    ) -> State:
        """What a tick would see so many seconds after the start."""
        ids = self.ids
        last = {name: START + timedelta(seconds=(refreshed or {}).get(name, 0)) for name in self.reads}
        tables = {ids[name]: self._table(name, last[name], suspended, unfilled) for name in self.reads}
        here = {ids[name]: "2" if name in moved else "1" for name in ids if name not in unfilled}
        return State(
            now=START + timedelta(seconds=after),
            told=SchedulerState(1, None, None, None, None, None),
            definitions=self._definitions(gated),
            tables=tables,
            cut={},
            here=here,
            moved={
                table.id: frozenset(
                    s for s in self._reads(self.names[table.id]) if here.get(s) != table.frontier.get(s)
                )
                for table in tables.values()
            },
            blown={ids[name]: _blown(ids[name], name) for name in blown},
            fused=frozenset(ids[name] for name in blown),
            running={},
            factors={ids[name]: factor for name, factor in (factors or {}).items()},
            since={ids[name]: START + timedelta(seconds=at) for name, at in (rested or {}).items()},
            board=cast(TickBoard, None),
            left_alone=frozenset(ids[name] for name in left_alone),
        )

    def _reads(self, name: str) -> frozenset[int]:
        return frozenset(self.ids[source] for source in self.reads[name])

    def _table(self, name: str, last: datetime, suspended: Collection[str], unfilled: Collection[str]) -> Schedulable:
        filled = name not in unfilled
        return Schedulable(
            id=self.ids[name],
            name=TableName.of([name]),
            schedule=self.schedules.get(name, "5s"),
            options=self.options.get(name, {}),
            status=Status.SUSPENDED if name in suspended else Status.ACTIVE,
            refresh_mode=RefreshMode.AUTO,
            populated=filled,
            version=1 if filled else None,
            last_refresh_at=last if filled else None,
            data_timestamp=last if filled else None,
            needs_reinitialize=False,
            always_refresh=False,
            consecutive_errors=0,
            frontier=dict.fromkeys(self._reads(name), "1") if filled else {},
        )

    def _definitions(self, gated: Collection[str]) -> Definitions:
        ids = self.ids
        nodes = {
            ids[name]: Stream(self._reads(name), self.options.get(name, {}).get("diamond_consistency") != "none")
            for name in self.reads
        }
        declared = [Group(g.name, frozenset(ids[member] for member in g.members), g.isolation) for g in self.groups]
        dag = build(nodes, declared)
        return Definitions(
            number=1,
            settings=self.settings,
            lineage=Lineage(
                {number: _relation(number, name, name in self.reads) for name, number in ids.items()},
                {ids[name]: self._reads(name) for name in self.reads},
            ),
            dag=dag,
            gated={ids[n]: SourceGate(ids[n], TableName.of([n]), True, START, None, "etl", None) for n in gated},
            watermark_groups=(),
            places={},
            schedules=effective_schedules(
                {ids[n]: Scheduled(self.schedules.get(n, "5s"), self._tier(n)) for n in self.reads},
                {node: dag.readers.get(node, ()) for node in nodes},
                default=self.settings.default_schedule,
                tiered=self.settings.tiered_scheduling,
            ),
        )

    def _tier(self, name: str) -> str:
        return str(self.options.get(name, {}).get("tier", "hot"))

    def named(self, ids: Iterable[int]) -> set[str]:
        return {self.names[number] for number in ids}


@dataclass
class Story:
    """A tick that is told what becomes of each unit, in place of workers."""

    world: World
    state: State
    changes: bool = True
    """Whether a refresh changes its table."""
    fails: Collection[str] = ()
    busy: Collection[str] = ()
    ran: list[tuple[str, ...]] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)

    def told(self) -> Story:
        """The whole tick."""
        made = plan(self.state, {self.world.ids[name] for name in self.busy})
        self.fresh |= self.world.named(made.idle)
        ended: dict[str, Ended] = {}
        for planned in made.units:
            assert planned.after <= ended.keys(), "a unit comes after those it reads from"
            choice = decide(made, planned, ended)
            ended[planned.unit.key] = self._carry_out(made, choice, planned.unit)
        return self

    def _carry_out(self, made: Plan, choice: Choice, unit: Unit[int]) -> Ended:
        match choice:
            case Rest(tables):
                self.fresh |= self.world.named(tables)
                return Ended()
            case Hold(verdicts) as hold:
                self.held |= {self.world.names[m]: v.decisive.reason for m, v in verdicts.items()}
                return hold.ended(made, unit)
            case Go(able):
                named = tuple(self.world.names[member] for member in able)
                self.ran.append(named)
                if any(name in self.fails for name in named):
                    return Ended(held={m: held_as(made, m, "SKIP", "its refresh failed") for m in unit.members})
                return Ended(frozenset(able) if self.changes else frozenset())


def told(world: World, state: State, **given: Any) -> Story:
    """What a tick does."""
    return Story(world, state, **given).told()


def _relation(number: int, name: str, is_stream: bool) -> Relation:
    kind = Kind.STREAM_TABLE if is_stream else Kind.TABLE
    return Relation(number, TableName.of([name]), kind, name, None, {}, None, (), None, START, START)


def _blown(number: int, name: str) -> Fuse:
    plain = Fuse(
        number, TableName.of([name]), "fixed", FuseState.ARMED, 10, None, None, None, {},
        None, None, None, None, None, None, START,
    )  # fmt: skip
    return replace(plain, state=FuseState.BLOWN, blown_at=START, blow_reason="too much")
