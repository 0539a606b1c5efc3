"""One statement that brings all stages of a stream table up to a change (pure).

    WITH  faces of the sources,
          for each stage its steps and its delta, and its faces for the stages after it,
          for each stage what changes its table
    SELECT how many rows should have gone and did not

All parts see the tables as they were when the statement began: a stored table is at its old state until the end, and
its new state is the old one without the rows that go and with those that come. Steps are MATERIALIZED, everything else
is NOT, so that PostgreSQL may push conditions into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.delta.groups import Groups
from trickle.delta.optimize import optimized
from trickle.delta.optimize.prune import prune_plan
from trickle.delta.parts import group_count
from trickle.delta.plan import OWN, Plan
from trickle.delta.stages import Stage
from trickle.delta.typed import typed_nulls
from trickle.immediate.postgres.faces import COUNT, SourceFaces, copies, face_name, listed
from trickle.immediate.postgres.groups import ALIVE, MERGED, NEW, OLD, WAS, GroupChange
from trickle.immediate.postgres.lookups import KEPT, MOVED, with_lookups
from trickle.immediate.postgres.recursion import iterated
from trickle.operators import Face, Operator, Scan, Step, walk
from trickle.postgres.names import identifier
from trickle.sql.lower import lower


@dataclass(frozen=True)
class Store:
    """The table of a stage: its name in SQL, and how its columns (as trees call them) are called and typed in it."""

    stage: Stage
    table: str
    names: Mapping[str, str]
    stored: Mapping[str, str]
    types: Mapping[str, str]
    certain: frozenset[str]
    """The columns that are never NULL."""
    rounds: int
    """The most that a recursion may have."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.stage.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which rows are looked up; all of them unless groups are stored."""
        return self.stage.looked_up_by if isinstance(self.stage.keeping, Groups) else self.columns

    def real(self, column: str) -> str:
        """A column's name in the table, quoted."""
        return identifier(self.names[column])

    def plan(self, unchanged: frozenset[str]) -> Plan:
        """What computes the change when these tables do not change."""
        keeping = self.stage.keeping
        if isinstance(keeping, Groups):
            keys = {key for key in keeping.aggregate.keys if keeping.place[key] in self.certain}
            plan = GroupChange(keeping, self.stored, frozenset(keys)).plan()
        else:
            plan = keeping.change()
        plan = optimized(prune_plan(plan, unchanged))
        steps = tuple(replace(step, tree=iterated(step.tree, self.rounds)) for step in plan.steps)
        return replace(plan, steps=steps, result=iterated(plan.result, self.rounds))

    @property
    def whole(self) -> Operator:
        """All its rows, computed from the sources."""
        return iterated(self.stage.whole, self.rounds)


@dataclass(frozen=True)
class Change:
    """What a statement is made for: the stages, and the faces of the sources that changed and of those that did not."""

    stores: Sequence[Store]
    sources: Mapping[str, SourceFaces]
    changed: frozenset[str]
    certain: Mapping[str, frozenset[str]]


def statement(change: Change) -> str:
    """The statement; it gives one row, with the number of rows that should have gone and were not there."""
    writer = _Writer(change)
    for place, store in enumerate(change.stores):
        writer.stage(place, store)
    return writer.written()


class _Writer:
    def __init__(self, change: Change) -> None:
        self._change = change
        self._parts: dict[str, str] = {}
        self._applied: dict[str, str] = {}
        self._missing: list[str] = []
        self._unchanged = {label for label in change.sources if label not in change.changed}
        self._faces = {name: query for faces in change.sources.values() for name, query in faces.queries()}
        self._derived = {(label, Face.OLD) for label in change.changed if change.sources[label].is_derived}

    def written(self) -> str:
        ctes = ", ".join(f"{identifier(name)} AS {body}" for name, body in (self._parts | self._applied).items())
        missing = " + ".join(self._missing) or "0"
        return f"WITH {ctes} SELECT {missing}" if ctes else f"SELECT {missing}"

    def stage(self, place: int, store: Store) -> None:
        """Add what a stage does."""
        if store.stage.reads <= self._unchanged:
            self._unchanged.add(store.stage.table)
            self._faces[face_name(store.stage.table, Face.NEW)] = f"SELECT {_renamed(store)} FROM {store.table}"
            return
        plan = with_lookups(store.plan(frozenset(self._unchanged)), self._change.certain, frozenset(self._derived))
        for step in plan.steps:
            self._parts[_step(place, step.name)] = f"MATERIALIZED ({self._lowered(place, store, step.tree)})"
        delta = f"s{place}_delta"
        self._parts[delta] = f"MATERIALIZED ({self._lowered(place, store, plan.result)})"
        self._apply(place, store, plan, identifier(delta))

    def _lowered(self, place: int, store: Store, tree: Operator) -> str:
        def name_of(leaf: Scan | Step) -> str:
            if isinstance(leaf, Step):
                return _step(place, leaf.name)
            if leaf.table == OWN:
                return self._own(place, store)
            return self._face(face_name(leaf.table, leaf.face))

        for leaf in walk(tree):
            if isinstance(leaf, Scan | Step):
                name_of(leaf)
        return lower(typed_nulls(tree, store.types), name_of, "postgres_own")

    def _face(self, name: str) -> str:
        if name not in self._parts:
            self._parts[name] = f"NOT MATERIALIZED ({self._faces[name]})"
        return name

    def _own(self, place: int, store: Store) -> str:
        name = f"s{place}_own"
        if name not in self._parts:
            columns = _renamed(store)
            located = f"0 AS {identifier(FILE)}, ctid AS {identifier(ROW)}"
            self._parts[name] = f"NOT MATERIALIZED (SELECT {columns}, {located} FROM {store.table})"
        return name

    def _apply(self, place: int, store: Store, plan: Plan, delta: str) -> None:
        if isinstance(store.stage.keeping, Groups):
            self._apply_groups(place, store, delta)
            went = f"SELECT {_prefixed(store, OLD)}, -1::bigint AS {identifier(WEIGHT)} FROM {delta} WHERE {_WAS}"
            came = f"SELECT {_prefixed(store, NEW)}, 1::bigint AS {identifier(WEIGHT)} FROM {delta} WHERE {_ALIVE}"
            gone = f"SELECT {identifier(ROW)} FROM {delta} WHERE {_WAS}"
            new = f"SELECT {_prefixed(store, NEW)} FROM {delta} WHERE {_ALIVE}"
            self._face_stage(store, f"{went} UNION ALL {came}", gone, new)
            return
        net, found = self._net(place, store, plan, delta)
        columns = listed(store.columns)
        weight = identifier(WEIGHT)
        change = f"SELECT {columns}, sign({COUNT})::bigint AS {weight} FROM {net}, {copies(f'abs({COUNT})')}"
        new = f"SELECT {columns} FROM {net}, {copies(COUNT)} WHERE {COUNT} > 0"
        gone = f"SELECT {identifier(ROW)} FROM {found}"
        self._applied[f"s{place}_deleted"] = f"(DELETE FROM {store.table} WHERE ctid IN ({gone}) RETURNING 1)"
        self._applied[f"s{place}_inserted"] = f"(INSERT INTO {store.table} ({_reals(store)}) {new} RETURNING 1)"
        wanted = f"(SELECT coalesce(-sum({COUNT}), 0) FROM {net} WHERE {COUNT} < 0)"
        self._missing.append(f"abs({wanted} - (SELECT count(*) FROM {identifier(f's{place}_deleted')}))")
        self._face_stage(store, change, gone, new)

    def _apply_groups(self, place: int, store: Store, delta: str) -> None:
        row, updated, deleted = identifier(ROW), f"s{place}_updated", f"s{place}_deleted"
        there = f"t.ctid = d.{row} AND d.{_WAS}"
        settable = [column for column in store.columns if column not in store.key]
        gone = f"NOT d.{_ALIVE}"
        if settable:
            values = ", ".join(f"{store.real(column)} = d.{identifier(NEW + column)}" for column in settable)
            self._applied[updated] = (
                f"(UPDATE {store.table} AS t SET {values} FROM {delta} AS d WHERE {there} AND d.{_ALIVE} RETURNING 1)"
            )
        if store.key:
            self._applied[deleted] = (
                f"(DELETE FROM {store.table} AS t USING {delta} AS d WHERE {there} AND {gone} RETURNING 1)"
            )
            self._applied[f"s{place}_inserted"] = (
                f"(INSERT INTO {store.table} ({_reals(store)})"
                f" SELECT {', '.join(identifier(NEW + column) for column in store.columns)}"
                f" FROM {delta} WHERE NOT {_WAS} AND {_ALIVE} RETURNING 1)"
            )
        done = [name for name in (updated, deleted) if name in self._applied]
        counted = " + ".join(f"(SELECT count(*) FROM {identifier(name)})" for name in done)
        self._missing.append(f"abs((SELECT count(*) FROM {delta} WHERE {_WAS}) - ({counted}))")
        if store.key:
            merged, count = identifier(_step(place, MERGED)), identifier(group_count().name)
            self._missing.append(f"(SELECT count(*) FROM {merged} WHERE {count} < 0)")

    def _net(self, place: int, store: Store, plan: Plan, delta: str) -> tuple[str, str]:
        """The net change of rows that are found by their values, and the places of those that go."""
        columns, weight, row = listed(store.columns), identifier(WEIGHT), identifier(ROW)
        net, found = f"s{place}_net", f"s{place}_found"
        self._parts[net] = (
            f"MATERIALIZED (SELECT {columns}, sum({weight})::int AS {COUNT}, row_number() OVER () AS {_PLACE}"
            f" FROM {delta} GROUP BY {columns} HAVING sum({weight}) <> 0)"
        )
        if plan.located:
            self._parts[found] = f"MATERIALIZED (SELECT {row} FROM {delta} WHERE {weight} < 0)"
            return identifier(net), identifier(found)
        same = " AND ".join(
            f"t.{store.real(c)} = g.{identifier(c)}"
            if c in store.certain
            else f"t.{store.real(c)} IS NOT DISTINCT FROM g.{identifier(c)}"
            for c in store.columns
        )
        hashes = (
            f"{hash_of([f't.{store.real(c)}' for c in store.columns])} ="
            f" {hash_of([f'g.{identifier(c)}' for c in store.columns])}"
        )
        self._parts[found] = (
            f"MATERIALIZED (SELECT {row} FROM (SELECT t.ctid AS {row}, g.{COUNT},"
            f" row_number() OVER (PARTITION BY g.{_PLACE}) AS {_COPY}"
            f" FROM {identifier(net)} AS g JOIN {store.table} AS t ON {hashes} AND {same} WHERE g.{COUNT} < 0) AS f"
            f" WHERE {_COPY} <= -{COUNT})"
        )
        return identifier(net), identifier(found)

    def _face_stage(self, store: Store, change: str, gone: str, new: str) -> None:
        label = store.stage.table
        before = f"SELECT {_renamed(store)} FROM {store.table}"
        kept = f"{before} WHERE ctid NOT IN ({gone})"
        self._faces |= {
            face_name(label, Face.CHANGE): change,
            face_name(label, Face.OLD): before,
            face_name(label + KEPT, Face.NEW): kept,
            face_name(label + MOVED, Face.NEW): new,
            face_name(label, Face.NEW): f"{kept} UNION ALL {new}",
        }
        self._derived.add((label, Face.NEW))


_WAS = identifier(WAS)
_PLACE = identifier("__trickle_place")
_COPY = identifier("__trickle_copy")
_ALIVE = identifier(ALIVE)


def hash_of(values: Sequence[str]) -> str:
    """The hash of a row of values, as ``lookups.hashed`` spells it."""
    return f"hash_record_extended(ROW({', '.join(values)}), 0)"


def _step(place: int, name: str) -> str:
    return f"s{place}_{name}"


def _renamed(store: Store) -> str:
    return ", ".join(f"{store.real(column)} AS {identifier(column)}" for column in store.columns)


def _reals(store: Store) -> str:
    return ", ".join(map(store.real, store.columns))


def _prefixed(store: Store, prefix: str) -> str:
    return ", ".join(f"{identifier(prefix + column)} AS {identifier(column)}" for column in store.columns)
