"""Recursions whose result is kept in a table (pure).

A recursion has a start B and a step T; X is its result. With UNION, and a step that is linear (``delta/linear.py``), X
is the least set with X = B + T(X). Stored is X_old. In one refresh, deletions first, then insertions:

    touched    = dB + dT(X_old)                     derivations that went and came; T changes with its sources
    going      = the rows of X_old that touched takes a derivation from,
                 then T_old of them, and so on      over-deletion: all that might have rested on what went
    saved      = the rows of going that B_new or T_new(X_old - going) makes,
                 then those that T_new of them makes, and so on
    lost       = going - saved
    fresh      = touched - dT(lost), netted, > 0    derivations that came, from rows that are still there
    coming     = fresh without (X_old - lost),
                 then T_new of them, without it, and so on
    change     = coming - lost

Why it is right. A row outside ``going`` has none of its derivations taken away, and none of them rests on a row of
``going``: it is in X_new. Rows of ``saved`` are derived from such rows; so Y = X_old - lost is in X_new. A row of
``lost`` has no derivation in the new state from rows of Y, or it would have been saved: cycles that only hold
themselves up are all in ``going``, and stay lost. What T_new and B_new make of Y and is not in Y is made by derivations
that came: ``fresh``, exactly, as T is linear and touched - dT(lost) = dB + dT(Y). The closure of Y under them is X_new.
Derivations that go are not netted with those that come: a row may lose the one that held it up and gain one that rests
on itself.

Each loop is a recursion again, over what is small, and is run like any other. A recursion with UNION ALL, or whose step
is not linear, is computed anew and compared with what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta.building import call, deleted
from trickle.delta.differentiate import differentiate
from trickle.delta.linear import Nonlinear, linear_step, with_previous
from trickle.delta.narrow import narrowed
from trickle.delta.plan import Plan, PlanStep, own
from trickle.delta.weighted import literal, union, weighted
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Step,
    at_face,
    col,
    null_safe,
    transformed,
)

TOUCHED = "touched"
STRUCK = "struck"
GOING = "going"
SAVED = "saved"
LOST = "lost"
FRESH = "fresh"
COMING = "coming"

_KNOWN = "__trickle_known_"
_NET = "__trickle_net"

_Previous = Callable[[tuple[str, ...]], Operator]
"""What the step is applied to, for the names that it gives to its columns."""


@dataclass(frozen=True)
class Fixpoint:
    """A recursion, and the columns that are computed from it.

    Stored are these columns, and hidden (``__trickle_...``) those of the recursion that are not among them.
    """

    recursion: Recursion
    outputs: tuple[Output, ...]

    @cached_property
    def stored(self) -> tuple[Output, ...]:
        """The stored columns, over those of the recursion."""
        seen = {output.value.name for output in self.outputs if output.is_plain}
        hidden = (
            Output(f"__trickle_fix_{n}", col(name)) for n, name in enumerate(self.recursion.names) if name not in seen
        )
        return (*self.outputs, *hidden)

    @cached_property
    def place(self) -> Mapping[str, str]:
        """The stored column that holds a column of the recursion."""
        found: dict[str, str] = {}
        for output in self.stored:
            if output.is_plain:
                found.setdefault(output.value.name, output.name)
        return found

    @cached_property
    def step(self) -> Operator | Nonlinear:
        """The step in a form that is linear, or why the recursion is computed anew."""
        return linear_step(self.recursion) if self.recursion.distinct else Nonlinear("UNION ALL")

    @property
    def unrestricted(self) -> str | None:
        """Why all is computed anew when something changed, if so."""
        if not isinstance(self.step, Nonlinear):
            return None
        if not self.recursion.distinct:
            return "a recursive common table expression with UNION ALL"
        return f"a recursive common table expression whose step has {self.step.reason}"

    def whole(self) -> Operator:
        """All stored rows, computed from the sources."""
        return Project(self.recursion, self.stored)

    def change(self) -> Plan:
        """The change of the stored rows."""
        if isinstance(self.step, Nonlinear):
            return self._anew()
        return _Rules(self, self.step).plan()

    def old(self, names: tuple[str, ...]) -> Operator:
        """What is stored of the recursion, its columns under these names."""
        pairs = zip(self.recursion.names, names, strict=True)
        return own([(self.place[column], name) for column, name in pairs], located=False)

    def _anew(self) -> Plan:
        names = self.recursion.names
        new, old = at_face(self.recursion, Face.NEW), self.old(names)
        both_states = union((weighted(new, 1), weighted(old, -1)))
        return Plan((), Project(both_states, (*self.stored, Output(WEIGHT, col(WEIGHT)))))


@dataclass(frozen=True)
class _Rules:
    """The steps of the plan, each from those before it."""

    kept: Fixpoint
    step: Operator

    def plan(self) -> Plan:
        touched = PlanStep(TOUCHED, self._touched())
        struck = PlanStep(STRUCK, self._keys(Filter(touched.reference(), deleted())))
        going = PlanStep(GOING, self._going(struck))
        saved = PlanStep(SAVED, self._saved(going))
        lost = PlanStep(LOST, self._without(going.reference(), saved))
        fresh = PlanStep(FRESH, self._fresh(touched, lost))
        coming = PlanStep(COMING, self._coming(fresh, lost))
        steps = (touched, struck, going, saved, lost, fresh, coming)
        return Plan(steps, self._result(lost, coming), located=True)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.kept.recursion.names

    def _touched(self) -> Operator:
        base, step = differentiate(self.kept.recursion.base), self._step_change(self.kept.old)
        return union((self._named(base, weight=True), self._named(step, weight=True)))

    def _step_change(self, previous: _Previous) -> Operator:
        """The change of the step by its sources, over given rows."""
        return with_previous(differentiate(self.step), self.kept.recursion.name, previous)

    def _stepped(self, face: Face, previous: _Previous) -> Operator:
        """The step over given rows."""
        return with_previous(at_face(self.step, face), self.kept.recursion.name, previous)

    def _going(self, struck: PlanStep) -> Operator:
        base = self._among(self.kept.old(self._names), struck)
        return self._loop(GOING, base, self._stepped(Face.OLD, _latest(GOING)))

    def _saved(self, going: PlanStep) -> Operator:
        start = at_face(self.kept.recursion.base, Face.NEW)
        rest = self._stepped(Face.NEW, lambda names: self._without(self.kept.old(names), going))
        found = [self._made(going, narrowed(tree, going.reference())) for tree in (start, rest)]
        return self._loop(SAVED, union(found), self._made(going, self._stepped(Face.NEW, _latest(SAVED))))

    def _fresh(self, touched: PlanStep, lost: PlanStep) -> Operator:
        """What derivations that came make; those that begin at a lost row are taken off."""
        change = self._named(self._step_change(_rows_of(lost)), weight=True)
        turned = Project(change, (*Output.keep(self._names), Output(WEIGHT, exp.Neg(this=col(WEIGHT)))))
        rows = union((touched.reference(), turned))
        netted = Aggregate(rows, self._names, (Output(_NET, call("sum", col(WEIGHT))),))
        return self._keys(Filter(netted, exp.GT(this=col(_NET), expression=literal(0))))

    def _coming(self, fresh: PlanStep, lost: PlanStep) -> Operator:
        def unknown(rows: Operator) -> Operator:
            known = _renamed(self.kept.old(self._names), _KNOWN)
            there = self._without(known, lost)
            return Join(JoinKind.ANTI, rows, there, null_safe(zip(rows.columns, known.columns, strict=True)))

        step = self._named(self._stepped(Face.NEW, _latest(COMING)))
        return self._loop(COMING, unknown(fresh.reference()), unknown(step))

    def _result(self, lost: PlanStep, coming: PlanStep) -> Operator:
        stored = [output.name for output in self.kept.stored]
        table = own([(name, name) for name in stored])
        gone = self._without(lost.reference(), coming)
        keys = _renamed(gone, _KNOWN)
        places = [self.kept.place[name] for name in self._names]
        on = null_safe(zip(places, keys.columns, strict=True))
        went = Join(JoinKind.SEMI, table, keys, on, small="right")
        came = self._without(coming.reference(), lost)
        nowhere = (Output(FILE, exp.null()), Output(ROW, exp.null()), Output(HIDDEN, exp.false()))
        somewhere = (Output(FILE, col(FILE)), Output(ROW, col(ROW)), Output(HIDDEN, exp.false()))
        return union(
            (
                Project(went, (*Output.keep(stored), Output(WEIGHT, literal(-1)), *somewhere)),
                Project(came, (*self.kept.stored, Output(WEIGHT, literal(1)), *nowhere)),
            )
        )

    def _loop(self, name: str, base: Operator, step: Operator) -> Recursion:
        return Recursion(name, self._names, base, step, distinct=True)

    def _named(self, tree: Operator, *, weight: bool = False) -> Operator:
        """The columns of a start or a step under the names of the recursion."""
        pairs = zip(self._names, tree.columns, strict=not weight)
        named = tuple(Output(name, col(column)) for name, column in pairs)
        return Project(tree, (*named, Output(WEIGHT, col(WEIGHT))) if weight else named)

    def _keys(self, rows: Operator) -> Operator:
        return Aggregate(Project(rows, Output.keep(self._names)), self._names)

    def _made(self, step: PlanStep, made: Operator) -> Operator:
        """The rows of a step that a relation makes too."""
        rows = _renamed(step.reference(), _KNOWN)
        found = Join(JoinKind.SEMI, rows, made, null_safe(zip(rows.columns, made.columns, strict=True)))
        return Project(found, tuple(Output(n, col(c)) for n, c in zip(self._names, rows.columns, strict=True)))

    def _among(self, rows: Operator, step: PlanStep) -> Operator:
        return self._compared(JoinKind.SEMI, rows, step)

    def _without(self, rows: Operator, step: PlanStep) -> Operator:
        return self._compared(JoinKind.ANTI, rows, step)

    def _compared(self, kind: JoinKind, rows: Operator, step: PlanStep) -> Operator:
        other = Step(step.name, tuple((name, f"__trickle_{step.name}_{n}") for n, name in enumerate(self._names)))
        return Join(kind, rows, other, null_safe(zip(rows.columns, other.columns, strict=True)), small="right")


def anchored(tree: Operator) -> Operator:
    """The tree with each recursion replaced by its start: other rows, but the same columns and types."""

    def start(node: Operator) -> Operator:
        if not isinstance(node, Recursion):
            return node
        pairs = zip(node.names, node.base.columns, strict=True)
        return Project(node.base, tuple(Output(name, col(column)) for name, column in pairs))

    return transformed(tree, start)


def _latest(loop: str) -> _Previous:
    return lambda names: RecursiveRef(loop, names)


def _rows_of(step: PlanStep) -> _Previous:
    return lambda names: Step(step.name, tuple(zip(step.tree.columns, names, strict=True)))


def _renamed(rows: Operator, prefix: str) -> Operator:
    return Project(rows, tuple(Output(f"{prefix}{n}", col(name)) for n, name in enumerate(rows.columns)))
