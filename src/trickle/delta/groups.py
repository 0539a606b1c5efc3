"""Aggregates whose result is kept in a table: only the groups that changed are touched.

    M = aggregate_k(contributions of dQ  +  T_old semi K)        T: the stored groups, K: the keys in dQ
    change of T = - the stored rows in M  +  the rows of M that still have rows

A stored row is one more row of its group, so one aggregation adds the change to it; nothing of Q is read. Where a part
says that it must be computed ``anew`` (``delta/parts.py``), the group is aggregated again from Q_new, restricted to
those groups alone: a step of its own, which is left out when there are none.

What is stored: the visible columns, and as hidden columns (``__trickle_...``) the keys and parts that are not visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta.building import both, call, case, cast, either, is_null, same
from trickle.delta.differentiate import differentiate
from trickle.delta.parts import Kept, Part, all_parts, group_count, keep
from trickle.delta.plan import CHANGED, Plan, PlanStep, own
from trickle.delta.weighted import key_name, keys_of, literal, restricted
from trickle.operators import (
    Aggregate,
    Expr,
    Face,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    UnionAll,
    at_face,
    col,
    null_safe,
    substituted,
)

_OLD = "__trickle_old_"
_NEW = "__trickle_new_"
_GROUPS = "groups"
_ANEW = "anew"


@dataclass(frozen=True)
class Groups:
    """An aggregate with the columns that are computed from it, and how they are stored.

    ``types`` has the type of each call's argument, by the call's name; ``stored_types`` those of stored columns:
    without them, a value that is only rounded when it is stored counts as changed.
    """

    aggregate: Aggregate
    outputs: tuple[Output, ...]
    types: tuple[tuple[str, str], ...] = ()
    stored_types: tuple[tuple[str, str], ...] = ()

    @cached_property
    def kept(self) -> Mapping[str, Kept]:
        """How each call is kept, by its name."""
        types = dict(self.types)
        return {c.name: keep(c, place, types.get(c.name, "")) for place, c in enumerate(self.aggregate.calls)}

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        found = all_parts(self.kept)
        counted = group_count()
        return found if not self.aggregate.keys or counted.name in {p.name for p in found} else (*found, counted)

    @cached_property
    def stored(self) -> tuple[Output, ...]:
        """The stored columns, over keys and parts."""
        values = {name: kept.value for name, kept in self.kept.items()}
        visible = [Output(output.name, substituted(output.value, values)) for output in self.outputs]
        seen = {output.value.name for output in visible if output.is_plain}
        hidden = [
            *(
                Output(f"__trickle_key_{place}", col(key))
                for place, key in enumerate(self.aggregate.keys)
                if key not in seen
            ),
            *(Output(part.name, col(part.name)) for part in self.parts if part.name not in seen),
        ]
        return (*visible, *hidden)

    @cached_property
    def place(self) -> Mapping[str, str]:
        """The stored column that holds a key or a part."""
        found: dict[str, str] = {}
        for output in self.stored:
            if output.is_plain:
                found.setdefault(output.value.name, output.name)
        return found

    @property
    def looked_up_by(self) -> tuple[str, ...]:
        """The stored columns by which rows are looked up."""
        return tuple(self.place[key] for key in self.aggregate.keys)

    def whole(self) -> Operator:
        """All stored rows, computed from the sources."""
        return Project(self._aggregated(self.aggregate.input, ""), self.stored)

    def _aggregated(self, rows: Operator, prefix: str) -> Aggregate:
        calls = tuple(Output(prefix + part.name, part.stored) for part in self.parts)
        return Aggregate(rows, self.aggregate.keys, calls)

    def change(self) -> Plan:
        """The change of the stored rows."""
        tree = self.aggregate
        changed = PlanStep(CHANGED, differentiate(tree.input))
        rows = changed.reference()
        merged = self._merged(rows)
        if all(part.anew == exp.false() for part in self.parts):
            return Plan((changed,), self._emitted(merged, {part.name: part.value for part in self.parts}), located=True)
        groups = PlanStep(_GROUPS, merged)
        again = both(exp.paren(either(*(part.anew for part in self.parts))), self._alive())
        wanted = PlanStep(
            _ANEW,
            Project(
                Filter(groups.reference(), again),
                tuple(Output(key_name(place), col(key)) for place, key in enumerate(tree.keys))
                or (Output("one", literal(1)),),
            ),
        )
        fresh = self._fresh(wanted.reference())
        joined = Join(JoinKind.LEFT, groups.reference(), fresh, self._on_fresh(), small="right")
        values = {part.name: case((again, col(_NEW + part.name)), otherwise=part.value) for part in self.parts}
        return Plan((changed, groups, wanted), self._emitted(joined, values), located=True)

    def _merged(self, change: Operator) -> Operator:
        tree = self.aggregate
        stored = [output.name for output in self.stored]
        nothing = [Output(_OLD + name, exp.null()) for name in stored]
        added = Project(
            change,
            (
                *Output.keep(tree.keys),
                *(Output(part.name, part.contribution) for part in self.parts),
                Output(WEIGHT, col(WEIGHT)),
                *nothing,
                Output(FILE, exp.null()),
                Output(ROW, exp.null()),
            ),
        )
        table = own([(name, _OLD + name) for name in stored])
        keys = [_OLD + self.place[key] for key in tree.keys]
        kept = restricted(table, keys, keys_of(change, tree.keys)) if keys else table
        old = Project(
            kept,
            (
                *(Output(key, col(name)) for key, name in zip(tree.keys, keys, strict=True)),
                *(Output(part.name, col(_OLD + self.place[part.name])) for part in self.parts),
                Output(WEIGHT, exp.null()),
                *Output.keep(_OLD + name for name in stored),
                Output(FILE, col(FILE)),
                Output(ROW, col(ROW)),
            ),
        )
        is_old = is_null(col(WEIGHT))
        remembered = [*(_OLD + name for name in stored), FILE, ROW]
        calls = (
            *(merge for part in self.parts for merge in part.merges),
            *(
                Output(name, exp.Filter(this=call("first", col(name)), expression=exp.Where(this=is_old)))
                for name in remembered
            ),
            Output(_OLD, call("count", case((is_old, literal(1))))),
        )
        return Aggregate(UnionAll((added, old)), tree.keys, calls)

    def _typed(self, output: Output) -> Expr:
        """A new value in the type in which it is stored."""
        kind = dict(self.stored_types).get(output.name)
        return output.value if kind is None else cast(output.value, kind)

    def _alive(self) -> Expr:
        """Whether the group still has rows; the group without keys is there always."""
        if not self.aggregate.keys:
            return exp.true()
        counted = next(part for part in self.parts if part.name == group_count().name)
        return exp.GT(this=counted.value.copy(), expression=exp.Literal.number("0"))

    def _fresh(self, wanted: Operator) -> Operator:
        tree = self.aggregate
        new = at_face(tree.input, Face.NEW)
        rows = restricted(new, tree.keys, wanted) if tree.keys else Join(JoinKind.SEMI, new, wanted)
        again = self._aggregated(rows, _NEW)
        keys = tuple(Output(_NEW + key, col(key)) for key in tree.keys)
        return Project(again, (*keys, *Output.keep(call.name for call in again.calls)))

    def _on_fresh(self) -> Expr | None:
        keys = self.aggregate.keys
        return null_safe([(key, _NEW + key) for key in keys]) if keys else None

    def _emitted(self, groups: Operator, values: Mapping[str, Expr]) -> Operator:
        """Each group as the row that goes and the row that comes."""
        keys, stored = self.aggregate.keys, [output.name for output in self.stored]
        # Parts first, then what is computed from them: a part may be an expression that should not be repeated.
        parts = Project(
            groups,
            (
                *Output.keep(keys),
                *(Output(name, value) for name, value in values.items()),
                *Output.keep([*(_OLD + name for name in stored), _OLD, FILE, ROW]),
                Output(_NEW, self._alive()),
            ),
        )
        both_rows = Project(
            parts,
            (
                *(Output(_NEW + output.name, self._typed(output)) for output in self.stored),
                *Output.keep([*(_OLD + name for name in stored), _OLD, FILE, ROW, _NEW]),
            ),
        )
        was = exp.GT(this=col(_OLD), expression=exp.Literal.number("0"))
        shown = [output.name for output in self.outputs]
        hidden = both(was, col(_NEW), same((_OLD + name, _NEW + name) for name in shown))
        differs = exp.Not(this=exp.paren(both(was, col(_NEW), same((_OLD + name, _NEW + name) for name in stored))))
        marked = Project(Filter(both_rows, differs), (*Output.keep(both_rows.columns), Output(HIDDEN, hidden)))
        split = Generate(marked, call("explode", call("array", literal(-1), literal(1))), (WEIGHT,))
        goes = exp.LT(this=col(WEIGHT), expression=exp.Literal.number("0"))
        rows = Filter(split, case((goes, was), otherwise=col(_NEW)))
        return Project(
            rows,
            (
                *(Output(name, case((goes, col(_OLD + name)), otherwise=col(_NEW + name))) for name in stored),
                Output(WEIGHT, col(WEIGHT)),
                Output(FILE, col(FILE)),
                Output(ROW, case((goes, col(ROW)))),
                Output(HIDDEN, col(HIDDEN)),
            ),
        )
