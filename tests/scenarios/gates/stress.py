"""Random graphs of stream tables through ticks (``make stress``).

A seed is a graph over three base tables (chains, diamonds, declared groups; schedules, tiers, fuses) and a story: rows
change, sources are gated, watermarks advance, fuses blow and are reset, queries fail on some rows, units are
interrupted at every step of their commit, tables are suspended and resumed. After each tick:

- *order*: what was refreshed shows what it reads as that stands at the end of the tick, and base tables at the cut;
- *whole*: members of a unit show each other as they stand;
- *lost*: what is due and behind its sources was held back or failed, and says so;
- *held*: nothing is held back while nothing could hold it;
- *truth*: every stream table equals its query at its frontier, computed by DuckDB over the Delta files (a Spark query
  takes a hundred times as long). A table that stands where it stood when it was last compared is not compared again.

At the end everything is let go: then all tables must show the newest rows, as Spark computes them.

Resets with ``skip_changes`` are not here: they leave a table on purpose unlike its query.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import trickle
from tests.scenarios.test_random_dag import QUERIES
from trickle.algebra.names import visible
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.catalog import relations, streams
from trickle.catalog.records import Schedulable, Status
from trickle.engine import Engine
from trickle.errors import TrickleError
from trickle.operators import Face
from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.definitions import definitions
from trickle.settings import parse_duration
from trickle.sources.lake import LakePosition
from trickle.testing import FakeClock, check, raise_at
from trickle.testing.duck import Duck, multiset

BASES = ("a", "b", "c")
MINUTE = timedelta(minutes=1)
FRAGILE = "SELECT k, 100 % v AS v FROM {x} WHERE v IS NOT NULL"
"""Fails as long as a row has the value 0."""
CEILING = 8
HELD = ("SKIP", "FAILED")


@dataclass(frozen=True)
class Look:
    """Where everything stands."""

    tables: Mapping[str, Schedulable]
    base: Mapping[str, int]
    names: Mapping[int, str]

    def frontier(self, name: str) -> dict[str, int]:
        """The versions of its sources that a stream table shows."""
        found = self.tables[name].frontier
        return {self.names[source]: LakePosition.parse(at).version for source, at in found.items()}

    def version(self, name: str) -> int | None:
        return self.tables[name].version if name in self.tables else self.base[name]


@dataclass
class Stress:
    """One seed."""

    t: Trickle
    clock: FakeClock
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    reads: dict[str, set[str]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, str] = field(default_factory=dict)
    tiers: dict[str, str] = field(default_factory=dict)
    units: list[list[str]] = field(default_factory=list)
    groups: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """Watermark groups: mode and sources."""
    verified: dict[str, object] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    """Tables that somebody refreshed alone since their unit was refreshed."""
    at: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    # The graph

    def build(self) -> None:
        """Make the tables, all filled."""
        self.t.sql("SET trickle.auto_backoff = false")
        for base in BASES:
            self.t.sql(f"CREATE TABLE {base} (k BIGINT, v BIGINT); INSERT INTO {base} VALUES {self._rows(6)}")
        for number in range(self.chance.randint(4, 6)):
            self._stream_table(f"s{number}")
        names = list(self.reads)
        if self.chance.random() < 0.5:
            isolation = self.chance.choice(["READ_COMMITTED", "REPEATABLE_READ"])
            self.t.create_refresh_group("declared", self.chance.sample(names, 2), isolation=isolation)
        if self.chance.random() < 0.4:
            mode, sources = self.chance.choice(["gate", "hold_back"]), self.chance.sample(BASES, 2)
            self.t.create_watermark_group("marks", sources, mode=mode, tolerance="30s")
            self.groups["marks"] = (mode, sources)
            self._advance()
        known = definitions(self.t.warehouse)
        self.units = [[known.name(member) for member in unit.members] for unit in known.dag.units]

    def _stream_table(self, name: str) -> None:
        chance = self.chance
        made = list(self.reads)
        x, y = (chance.choice(made) if made and chance.random() < 0.5 else chance.choice(BASES) for _ in range(2))
        template = chance.choice(QUERIES)
        if chance.random() < 0.2:
            # Over a base table: what is wrong with its rows can be repaired there.
            template, x = FRAGILE, chance.choice(BASES)
        self.tiers[name] = chance.choice(["hot", "hot", "hot", "warm"])
        options: dict[str, Any] = {"tier": self.tiers[name]}
        if chance.random() < 0.3:
            options |= {"fuse": "fixed", "fuse_ceiling": CEILING}
        if chance.random() < 0.15:
            options["diamond_consistency"] = "none"
        self.queries[name] = template.format(x=x, y=y)
        self.reads[name] = {x, y} if "{y}" in template else {x}
        schedule = chance.choice(["1m", "2m", "5m", "calculated", "calculated"])
        mode = chance.choice(["AUTO", "DIFFERENTIAL", "FULL"])
        self.schedules[name] = schedule
        self.t.create_stream_table(name, self.queries[name], schedule=schedule, refresh_mode=mode, **options)

    def _rows(self, count: int) -> str:
        zero = 0 if self.chance.random() < 0.3 and self.at else 1
        return ", ".join(f"({self.chance.randint(0, 5)}, {self.chance.randint(zero, 9)})" for _ in range(count))

    # The story

    def step(self) -> None:
        """Something happens, or nothing; then a tick, and a look at what it did."""
        self._tick(MINUTE, self._happens())

    def _tick(self, pause: timedelta, fault: Step | None = None) -> None:
        self.at += 1
        self.clock.advance(pause)
        before, last = self.look(), self._newest_refresh()
        with self._faulty(fault):
            results = {result.name: result for result in self.t.tick()}
        self.counts.update(result.action for result in results.values())
        self._check(before, self.look(), results, last)

    def _happens(self) -> Step | None:
        chance = self.chance
        if chance.random() < 0.25:
            self._change()
        self._gates()
        if chance.random() < 0.3:
            self._advance()
        if chance.random() < 0.02:
            self._suspend()
        if chance.random() < 0.02:
            self._by_hand()
        for fuse in self.t.fuse_status():
            if fuse.state == "BLOWN" and chance.random() < 0.3:
                self.counts["blown"] += 1
                self.t.reset_fuse(fuse.name, chance.choice(["apply", "reinitialize"]))
        for row in self.t.status():
            if row.status == "SUSPENDED" and chance.random() < 0.3:
                self._repair()
                self.t.resume_stream_table(row.name)
        return chance.choice(list(Step)) if chance.random() < 0.05 else None

    def _change(self) -> None:
        chance, base = self.chance, self.chance.choice(BASES)
        statements = [
            f"INSERT INTO {base} VALUES {self._rows(2)}",
            f"INSERT INTO {base} VALUES {self._rows(1)}",
            f"UPDATE {base} SET v = v + 1 WHERE k = {chance.randint(0, 5)}",
            f"DELETE FROM {base} WHERE k = {chance.randint(0, 5)}",
            f"DELETE FROM {base} WHERE v = {chance.randint(0, 9)}",
        ]
        self.t.sql(chance.choice(statements))
        if chance.random() < 0.2:
            # Many rows come, and as many go: the table stays as small as it was.
            self.t.sql(f"DELETE FROM {base} WHERE v > 2; INSERT INTO {base} VALUES {self._rows(CEILING)}")

    def _gates(self) -> None:
        for row in self.t.source_gates():
            if row.gated and self.chance.random() < 0.25:
                self.t.ungate_source(row.source)
        if self.chance.random() < 0.03:
            self.t.gate_source(self.chance.choice(BASES))

    def _advance(self) -> None:
        for _, sources in self.groups.values():
            for source in sources:
                if self.chance.random() < 0.85 or not self.at:
                    self.t.advance_watermark(source, self.clock.now())

    def _suspend(self) -> None:
        self.t.suspend_stream_table(self.chance.choice(list(self.reads)))

    def _by_hand(self) -> None:
        name = self.chance.choice(list(self.reads))
        # A gate may hold it back, or its query may fail: both are for whoever asked.
        with suppress(TrickleError):
            self.t.refresh_stream_table(name)
            self.alone.add(name)

    def _repair(self) -> None:
        """Take away what queries fail on, wherever it came from."""
        for base in BASES:
            self.t.sql(f"UPDATE {base} SET v = 1 WHERE v = 0")

    @contextmanager
    def _faulty(self, step: Step | None) -> Iterator[None]:
        with nullcontext() if step is None else raise_at(step) as seen:
            yield
        if seen:
            self.counts["faults"] += (step, 0) in seen

    # What must hold

    def look(self) -> Look:
        with self.t.warehouse.catalog.read() as tx:
            tables = {str(table.name): table for table in streams.schedulable(tx)}
            names = {relation.id: str(relation.name) for relation in relations.listing(tx)}
        return Look(tables, {base: self._delta(base).version() for base in BASES}, names)

    def _newest_refresh(self) -> int:
        return max((row.id for row in self.t.refresh_history(limit=1)), default=0)

    def _check(self, before: Look, after: Look, results: Mapping[str, RefreshResult], last: int) -> None:
        self._order(before, after, last)
        self._whole(after)
        self._lost(before, after, results)
        self._held(after, results)
        self._truth(after)

    def _order(self, before: Look, after: Look, last: int) -> None:
        rows = [row for row in self.t.refresh_history(limit=50) if row.id > last and row.status == "COMPLETED"]
        places = {row.name: row.id for row in rows if row.action != "SKIP"}
        for unit in self.units:
            if not places.keys().isdisjoint(unit):
                self.alone.difference_update(unit)
        for name, place in places.items():
            for source, version in after.frontier(name).items():
                if source in after.tables:
                    self._expect(
                        version == after.version(source), f"{name} shows {source} at {version}, before it moved"
                    )
                    self._expect(places.get(source, 0) < place, f"{name} was refreshed before {source}")
                elif not self._is_held_back(source):
                    self._expect(version == before.base[source], f"{name} shows {source} at {version}, not at the cut")

    def _whole(self, after: Look) -> None:
        for unit in self.units:
            if len(unit) > 1 and self.alone.isdisjoint(unit):
                for name in unit:
                    for source, version in after.frontier(name).items():
                        if source in unit:
                            self._expect(version == after.version(source), f"{name} shows {source} as it is not")

    def _lost(self, before: Look, after: Look, results: Mapping[str, RefreshResult]) -> None:
        for name, table in after.tables.items():
            told = name in results and results[name].action in HELD
            if told or before.tables[name].status is Status.SUSPENDED or not self._is_due(name, before):
                continue
            for source in self.reads[name]:
                if not self._is_held_back(source):
                    now = after.version(source) if source in after.tables else before.base[source]
                    shown = after.frontier(name).get(source)
                    self._expect(shown == now, f"{name} is due, shows {source} at {shown} and not at {now}: {table}")

    def _held(self, after: Look, results: Mapping[str, RefreshResult]) -> None:
        held = {name: result.reason for name, result in results.items() if result.action == "SKIP"}
        causes = (
            any(row.gated for row in self.t.source_gates()),
            any(row.state == "BLOWN" for row in self.t.fuse_status()),
            any(table.status is Status.SUSPENDED for table in after.tables.values()),
            any(not row.aligned and row.mode == "gate" for row in self.t.watermark_status()),
            any(result.action == "FAILED" for result in results.values()),
            # A member that reads a table which is not due shows an older cut than the others would.
            any(group.isolation == "REPEATABLE_READ" for group in self.t.refresh_groups()),
        )
        self._expect(not held or any(causes), f"held back for no reason: {held}")

    def _truth(self, after: Look) -> None:
        for name, table in after.tables.items():
            stands = (table.version, after.frontier(name))
            if table.version is None or self.verified.get(name) == stands:
                continue
            with Duck() as duck:
                for source, version in after.frontier(name).items():
                    duck.load(source, Face.NEW, self._delta(source, version).to_pyarrow_table())
                expected = duck.text(self.queries[name])
            stored = self._delta(name, table.version).to_pyarrow_table()
            found = multiset(stored.select(visible(stored.column_names)))
            self._expect(
                found == multiset(expected), f"{name}: {self.queries[name]}\n  {found}\n  {multiset(expected)}"
            )
            self.verified[name] = stands
            self.counts["compared"] += 1

    def _is_due(self, name: str, before: Look) -> bool:
        last = before.tables[name].last_refresh_at
        return last is None or self.clock.now() - last >= self._interval(name)

    def _interval(self, name: str) -> timedelta:
        """A calculated table is as often as the most frequent that reads it; tiers multiply on the way."""
        readers = [reader for reader, sources in self.reads.items() if name in sources]
        own = parse_duration(self.schedules[name]) or min(map(self._interval, readers), default=MINUTE)
        return own * (2 if self.tiers[name] == "warm" else 1)

    def _is_held_back(self, source: str) -> bool:
        return any(mode == "hold_back" and source in sources for mode, sources in self.groups.values())

    def _delta(self, name: str, version: int | None = None) -> DeltaTable:
        folder = Path(self.t.warehouse.root.uri) / "default" / name
        return DeltaTable(str(folder), version=version)

    def _expect(self, holds: bool, words: str) -> None:
        if not holds:
            raise AssertionError(f"seed {self.seed}, tick {self.at}: {words}")

    # The end

    def finish(self) -> None:
        """Let everything go; then all tables show the newest rows."""
        for base in BASES:
            self.t.ungate_source(base)
        for group in list(self.groups):
            self.t.drop_watermark_group(group)
            del self.groups[group]
        self._repair()
        for _ in range(4):
            for fuse in self.t.fuse_status():
                if fuse.state == "BLOWN":
                    self.t.reset_fuse(fuse.name, "apply")
            for row in self.t.status():
                if row.status == "SUSPENDED":
                    self.t.resume_stream_table(row.name)
            self._tick(20 * MINUTE)
        after = self.look()
        for name in after.tables:
            for source, version in after.frontier(name).items():
                self._expect(version == after.version(source), f"{name} shows {source} at {version} in the end")
        check(self.t)


def run(engine: Engine, folder: Path, seed: int, ticks: int) -> Counter[str]:
    """One seed; how often what happened."""
    clock = FakeClock()
    with trickle.connect(folder, spark=engine.spark, clock=clock) as opened:
        stress = Stress(opened, clock, seed)
        stress.build()
        for _ in range(ticks):
            stress.step()
        stress.finish()
    return stress.counts
