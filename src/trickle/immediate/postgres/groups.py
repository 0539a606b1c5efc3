"""Groups that are stored in a table of PostgreSQL: a row for each that changes, to be updated where it lies (pure).

The rules are those of ``delta/groups.py``: a stored row is one more row of its group. What differs is the form. There
the change is a row that goes and a row that comes; here it is one row with both, so that a group which stays is
updated, its indexes are left alone, and who reads the table sees an update:

    held     = the stored groups of the keys in dQ, with the place of each
    merged   = aggregate_k(contributions of dQ  +  held)
    result   = merged left join held: new values, old values, the place; whether it was there, whether it has rows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from trickle.algebra.weights import ROW, WEIGHT
from trickle.delta.building import both, call, case, either, is_not_null, same
from trickle.delta.differentiate import differentiate
from trickle.delta.groups import Groups
from trickle.delta.parts import group_count
from trickle.delta.plan import CHANGED, Plan, PlanStep, own
from trickle.delta.typed import cast_to
from trickle.delta.weighted import key_name, literal
from trickle.immediate.postgres.lookups import matching
from trickle.operators import (
    Aggregate,
    Expr,
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    UnionAll,
    at_face,
    col,
    null_safe,
)

OLD = "__trickle_old_"
NEW = "__trickle_new_"
WAS = "__trickle_was"
ALIVE = "__trickle_alive"
MERGED = "merged"
"""The step that has the groups which the change touches, with what becomes of their parts."""
_HELD = "__trickle_held_"


@dataclass(frozen=True)
class GroupChange:
    """The plan of a change of stored groups. ``certain`` are keys that are never NULL."""

    groups: Groups
    types: Mapping[str, str]
    certain: frozenset[str]

    @property
    def stored(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.groups.stored)

    def plan(self) -> Plan:
        """Steps, and the result: ``OLD + column``, ``NEW + column``, the place, ``WAS`` and ``ALIVE``."""
        changed = PlanStep(CHANGED, differentiate(self.groups.aggregate.input))
        held = PlanStep("held", self._held(changed.reference()))
        merged = PlanStep(MERGED, self._merged(changed.reference(), held.reference()))
        groups = self._with_held(merged.reference(), held.reference())
        values = {part.name: part.value for part in self.groups.parts}
        if all(part.anew == exp.false() for part in self.groups.parts):
            return Plan((changed, held, merged), self._result(groups, values))
        again = both(exp.paren(either(*(part.anew for part in self.groups.parts))), self._alive())
        wanted = PlanStep("anew", self._wanted(Filter(merged.reference(), again)))
        fresh = self._fresh(wanted.reference())
        joined = Join(JoinKind.LEFT, groups, fresh, self._on([(key, NEW + key) for key in self._keys]), small="right")
        values = {part.name: case((again, col(NEW + part.name)), otherwise=part.value) for part in self.groups.parts}
        return Plan((changed, held, merged, wanted), self._result(joined, values))

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.groups.aggregate.keys

    def _on(self, pairs: list[tuple[str, str]]) -> Expr | None:
        return matching(pairs, self.certain) if pairs else None

    def _held(self, change: Operator) -> Operator:
        table = own([(name, _HELD + name) for name in self.stored])
        if not self._keys:
            return table
        wanted = self._wanted(change)
        keys = Aggregate(wanted, wanted.columns)
        pairs = [(key_name(n), _HELD + self.groups.place[key]) for n, key in enumerate(self._keys)]
        certain = {key_name(n) for n, key in enumerate(self._keys) if key in self.certain}
        joined = Join(JoinKind.INNER, keys, table, matching(pairs, frozenset(certain)), small="left")
        return Project(joined, Output.keep(table.columns))

    def _merged(self, change: Operator, held: Operator) -> Operator:
        parts = self.groups.parts
        added = Project(
            change,
            (
                *Output.keep(self._keys),
                *(Output(part.name, part.contribution) for part in parts),
                Output(WEIGHT, col(WEIGHT)),
            ),
        )
        place = self.groups.place
        kept = Project(
            held,
            (
                *(Output(key, col(_HELD + place[key])) for key in self._keys),
                *(Output(part.name, col(_HELD + place[part.name])) for part in parts),
                Output(WEIGHT, exp.null()),
            ),
        )
        merges = tuple(merge for part in parts for merge in part.merges)
        # The one group of all rows may have nothing to merge; it is a row all the same.
        counted = (Output("__trickle_rows", call("count", exp.Star())),)
        return Aggregate(UnionAll((added, kept)), self._keys, merges or counted)

    def _with_held(self, merged: Operator, held: Operator) -> Operator:
        place = self.groups.place
        pairs = [(key, _HELD + place[key]) for key in self._keys]
        return Join(JoinKind.LEFT, merged, held, self._on(pairs), small="right")

    def _wanted(self, rows: Operator) -> Operator:
        keys = tuple(Output(key_name(place), col(key)) for place, key in enumerate(self._keys))
        return Project(rows, keys or (Output("one", literal(1)),))

    def _fresh(self, wanted: Operator) -> Operator:
        tree = self.groups.aggregate
        new = at_face(tree.input, Face.NEW)
        pairs = [(key, key_name(place)) for place, key in enumerate(tree.keys)]
        rows = Join(JoinKind.SEMI, new, wanted, null_safe(pairs) if pairs else None, small="right")
        calls = tuple(Output(NEW + part.name, part.stored) for part in self.groups.parts)
        again = Aggregate(rows, tree.keys, calls)
        keys = tuple(Output(NEW + key, col(key)) for key in tree.keys)
        return Project(again, (*keys, *Output.keep(call.name for call in calls)))

    def _alive(self) -> Expr:
        if not self._keys:
            return exp.true()
        counted = next(part for part in self.groups.parts if part.name == group_count().name)
        return exp.GT(this=counted.value.copy(), expression=exp.Literal.number("0"))

    def _result(self, groups: Operator, values: Mapping[str, Expr]) -> Operator:
        held = [_HELD + name for name in self.stored]
        parts = Project(
            groups,
            (
                *Output.keep(self._keys),
                *(Output(name, value) for name, value in values.items()),
                *Output.keep([*held, ROW]),
                Output(WAS, is_not_null(col(ROW))),
                Output(ALIVE, self._alive()),
            ),
        )
        rows = Project(
            parts,
            (
                *(Output(OLD + name, col(_HELD + name)) for name in self.stored),
                *(
                    Output(NEW + output.name, cast_to(output.value, self.types[output.name]))
                    for output in self.groups.stored
                ),
                *Output.keep([ROW, WAS, ALIVE]),
            ),
        )
        unchanged = both(col(WAS), col(ALIVE), same((OLD + name, NEW + name) for name in self.stored))
        gone = exp.Not(this=exp.paren(either(col(WAS), col(ALIVE))))
        return Filter(rows, exp.Not(this=exp.paren(either(exp.paren(unchanged), gone))))
