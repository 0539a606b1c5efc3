"""A top-k whose result is kept in a table.

    C = T_old + dQ, netted                   T: the stored rows, at most k of them
    new rows = top_k(C)                      when enough of C is known

Rows up to the last stored one are all known: they are the stored rows and those of dQ. Rows beyond it are not, unless
fewer than k were stored, for then the stored rows are all there are. So top_k(C) is right when k rows of C come no
later than the last stored row, or when fewer than k were stored; else rows move up that nobody has kept, and the result
is taken from Q_new again (``refill``): a branch that is left out when it is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.delta.building import both, call, case
from trickle.delta.differentiate import differentiate
from trickle.delta.plan import CHANGED, Plan, PlanStep, own
from trickle.delta.weighted import literal, union, weighted
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
    TopK,
    UnionAll,
    Window,
    WindowOrder,
    at_face,
    col,
)

_COPIES = "__trickle_copies"
_STORED = "__trickle_stored"
_MARKED = "__trickle_marked"
_KNOWN = "__trickle_known"
_FOUND = "__trickle_found"
_HELD = "__trickle_held"
_CANDIDATES = "candidates"
_REFILL = "refill"


@dataclass(frozen=True)
class FirstRows:
    """A top-k without offset, and the columns that are computed from it.

    Stored are these columns, and hidden (``__trickle_...``) those of the top-k that are not among them.
    """

    top: TopK
    outputs: tuple[Output, ...]

    @cached_property
    def stored(self) -> tuple[Output, ...]:
        """The stored columns, over those of the top-k."""
        seen = {output.value.name for output in self.outputs if output.is_plain}
        hidden = (
            Output(f"__trickle_top_{n}", col(name)) for n, name in enumerate(self.top.columns) if name not in seen
        )
        return (*self.outputs, *hidden)

    def whole(self) -> Operator:
        """All stored rows, computed from the sources."""
        return Project(self.top, self.stored)

    def change(self) -> Plan:
        """The change of the stored rows."""
        changed = PlanStep(CHANGED, differentiate(self.top.input))
        candidates = PlanStep(_CANDIDATES, self._candidates(changed.reference()))
        refill = PlanStep(_REFILL, self._shortage(candidates.reference()))
        new = union((self._from_candidates(candidates, refill), self._from_sources(refill)))
        both_states = union((weighted(new, 1), weighted(self._old(), -1)))
        result = Project(both_states, (*self.stored, Output(WEIGHT, col(WEIGHT))))
        return Plan((changed, candidates, refill), result)

    def _old(self) -> Operator:
        places: dict[str, str] = {}
        for output in self.stored:
            if output.is_plain:
                places.setdefault(output.value.name, output.name)
        return own([(places[name], name) for name in self.top.columns], located=False)

    def _candidates(self, change: Operator) -> Operator:
        """Stored and changed rows, netted, each with whether it comes no later than the last stored row."""
        stored = weighted(self._old(), 1)
        rows = UnionAll(
            (
                Project(stored, (*Output.keep(stored.columns), Output(_STORED, literal(1)))),
                Project(change, (*Output.keep(change.columns), Output(_STORED, literal(0)))),
            )
        )
        netted = Aggregate(
            rows,
            self.top.columns,
            (Output(_COPIES, call("sum", col(WEIGHT))), Output(_MARKED, call("sum", col(_STORED)))),
        )
        later = exp.Window(
            this=call("sum", col(_MARKED)),
            order=exp.Order(expressions=[_ordered(term) for term in self.top.order]),
            spec=exp.WindowSpec(kind="ROWS", start="CURRENT ROW", end="UNBOUNDED", end_side="FOLLOWING"),
        )
        return Window(netted, (), (Output(_KNOWN, later),))

    def _shortage(self, candidates: Operator) -> Operator:
        """One row when rows that nobody has kept move up."""
        limit = literal(self.top.limit or 0)
        known = case((exp.GT(this=col(_KNOWN), expression=literal(0)), col(_COPIES)), otherwise=literal(0))
        counted = Aggregate(
            candidates,
            (),
            (Output(_FOUND, call("sum", known)), Output(_HELD, call("sum", col(_MARKED)))),
        )
        return Filter(
            counted,
            both(exp.GTE(this=col(_HELD), expression=limit), exp.LT(this=col(_FOUND), expression=limit)),
        )

    def _from_candidates(self, candidates: PlanStep, refill: PlanStep) -> Operator:
        some = Filter(candidates.reference(), exp.GT(this=col(_COPIES), expression=literal(0)))
        copied = Generate(
            some, call("explode", call("array_repeat", literal(0), _as_int(col(_COPIES)))), ("__trickle_copy",)
        )
        top = replace(self.top, input=Project(copied, Output.keep(self.top.columns)))
        return Join(JoinKind.ANTI, top, refill.reference())

    def _from_sources(self, refill: PlanStep) -> Operator:
        return Join(JoinKind.SEMI, at_face(self.top, Face.NEW), refill.reference())


def _as_int(value: Expr) -> Expr:
    return exp.cast(value, "int", dialect="spark")


def _ordered(term: WindowOrder) -> Expr:
    return exp.Ordered(this=col(term.name), desc=term.descending, nulls_first=term.nulls_first)
