"""A query cut into stages, each kept in a table of its own (pure).

The change of an aggregate, a top-k or a recursion is cheap where its result is stored, and needs its whole input where
it is not. So the tree is cut below the root at each of them: the inner one becomes a *stage*, stored in a table that
belongs to the stream table, and what was above it reads that table, at its old, new and changing face, like any other
source. The last stage is the stream table itself.

    SELECT max(total) FROM (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer)

    stage 1: total by customer, from orders                  kept by its groups
    stage 2: max(total), from stage 1                        kept by its only group

Safe because a relation may be replaced by a table that holds it. Equal parts of a query become one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from trickle.delta.differentiate import differentiate
from trickle.delta.first_rows import FirstRows
from trickle.delta.fixpoint import Fixpoint
from trickle.delta.groups import Groups
from trickle.delta.optimize import optimized
from trickle.delta.optimize.prune import prune_plan
from trickle.delta.plan import Plan
from trickle.delta.typed import Types
from trickle.operators import (
    Aggregate,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    TopK,
    Window,
    show,
    walk,
)
from trickle.operators.clock import NOW
from trickle.sql.rewrites.copy import renamed_tree

STATE = "__trickle_state_"
"""Tables of stages other than the last are called this and their number, from 1."""

TypesOf = Callable[[Aggregate], Sequence[tuple[str, str]]]
"""The types of the arguments of an aggregate's calls, by the names of the calls."""


StoredTypes = Callable[[Operator, Operator], Sequence[tuple[str, str]]]
"""The types of the stored columns, from the relation as the query has it and from the same with hidden columns."""


@dataclass(frozen=True)
class Rows:
    """Any other relation: stored as it is, and changed by the plain rules."""

    tree: Operator

    @property
    def stored(self) -> tuple[Output, ...]:
        """The stored columns."""
        return Output.keep(self.tree.columns)

    def whole(self) -> Operator:
        """All stored rows, computed from the sources."""
        return self.tree

    def change(self) -> Plan:
        """The change of the stored rows."""
        return Plan((), differentiate(self.tree))


Keeping = Groups | FirstRows | Fixpoint | Rows


@dataclass(frozen=True)
class Stage:
    """A relation that is kept in a table.

    ``plain`` is the relation as the query has it, ``whole`` the same with hidden columns; both read the sources alone.
    ``keeping`` may read the tables of earlier stages. ``types`` are those of columns that NULL may take the place of.
    """

    table: str
    keeping: Keeping
    plain: Operator
    whole: Operator
    types: Types = field(default_factory=dict, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.keeping.stored)

    @cached_property
    def change(self) -> Plan:
        """The change of the stored rows, as the rules have it."""
        return self.keeping.change()

    @cached_property
    def _plans(self) -> dict[frozenset[str], Plan]:
        return {}

    def plan(self, unchanged: Collection[str]) -> Plan:
        """The same when these tables did not change, in the form that is run; made once."""
        known = frozenset(unchanged) & self.reads
        if known not in self._plans:
            self._plans[known] = optimized(prune_plan(self.change, known))
        return self._plans[known]

    @property
    def looked_up_by(self) -> tuple[str, ...]:
        """The columns by which changes look up stored rows; none where it is by whole row."""
        return self.keeping.looked_up_by if isinstance(self.keeping, Groups) else ()

    @property
    def reads(self) -> frozenset[str]:
        """The tables of sources and of earlier stages that its change is computed from."""
        return frozenset(node.table for node in walk(self._tree) if isinstance(node, Scan))

    @property
    def _tree(self) -> Operator:
        return self.keeping.whole()


def split(
    tree: Operator,
    types_of: TypesOf,
    own_table: str,
    stored_types: StoredTypes | None = None,
    types: Types | None = None,
) -> tuple[Stage, ...]:
    """The stages of a query, in the order in which they are computed; the last is kept in ``own_table``.

    ``types`` are those of columns in the tree that NULL may take the place of.
    """
    cutter = _Cutter(types_of, stored_types or _unknown)
    last = cutter.stage(tree, own_table, types or {})
    return (*cutter.stages, last)


class _Cutter:
    def __init__(self, types_of: TypesOf, stored_types: StoredTypes) -> None:
        self._types_of = types_of
        self._stored_types = stored_types
        self._known: dict[str, Stage] = {}
        self.stages: list[Stage] = []

    def stage(self, tree: Operator, table: str, types: Types) -> Stage:
        """A stage for a relation; what has to be cut below its root is."""
        whole = self._keeping(tree, _as_is).whole()
        stored = tuple(self._stored_types(tree, whole))
        keeping = self._keeping(tree, partial(self._cut, types))
        if isinstance(keeping, Groups):
            keeping = replace(keeping, stored_types=stored)
        return Stage(table, keeping, tree, whole, types)

    def _keeping(self, tree: Operator, below: Callable[[Operator], Operator]) -> Keeping:
        top, outputs = tree, Output.keep(tree.columns)
        # What the clock says in a column changes for rows whose group did not: those are looked at from above.
        if isinstance(tree, Project) and NOW not in tree.used:
            top, outputs = tree.input, tree.outputs
        if isinstance(top, Aggregate):
            types = tuple(self._types_of(top))
            return Groups(replace(top, input=below(top.input)), outputs, types)
        if isinstance(top, TopK) and top.limit is not None and not top.offset:
            return FirstRows(replace(top, input=below(top.input)), outputs)
        if isinstance(top, Recursion):
            return Fixpoint(replace(top, base=below(top.base), step=below(top.step)), outputs)
        return Rows(below(tree))

    def _cut(self, types: Types, tree: Operator) -> Operator:
        """The relation with every aggregate, top-k and recursion in it replaced by a table."""
        match tree:
            case Aggregate() | Recursion() if _stands_alone(tree):
                return self._stored(tree, types)
            case TopK() if _stands_alone(tree) and tree.limit is not None:
                first = replace(tree, limit=tree.limit + tree.offset, offset=0)
                stored = self._stored(first, types)
                return replace(tree, input=stored) if tree.offset else stored
            case _:
                return tree.with_inputs([self._cut(types, child) for child in tree.inputs]) if tree.inputs else tree

    def _stored(self, tree: Aggregate | TopK | Recursion, types: Types) -> Operator:
        plain, names = _with_plain_names(tree)
        form = show(plain)
        if form not in self._known:
            # Stages inside come first: the number is taken after them.
            stage = self.stage(plain, "", {names[name]: kind for name, kind in types.items() if name in names})
            numbered = replace(stage, table=f"{STATE}{len(self.stages) + 1}")
            self.stages.append(numbered)
            self._known[form] = numbered
        return Scan(self._known[form].table, tuple((names[name], name) for name in tree.columns))


def _unknown(_plain: Operator, _whole: Operator) -> Sequence[tuple[str, str]]:
    return ()


def _as_is(tree: Operator) -> Operator:
    return tree


def _stands_alone(tree: Operator) -> bool:
    """Whether the relation can be computed by itself: not inside a recursion's step, over what the step before made."""
    own = {node.name for node in walk(tree) if isinstance(node, Recursion)}
    return all(node.name in own for node in walk(tree) if isinstance(node, RecursiveRef))


def _with_plain_names(tree: Operator) -> tuple[Operator, dict[str, str]]:
    """The relation with names that depend on its shape alone, so that equal parts of a query are told to be equal."""
    names: dict[str, str] = {}
    for node in walk(tree):
        for name in node.columns:
            names.setdefault(name, f"c{len(names)}")
    return renamed_tree(tree, names), names


def unrestricted(stage: Stage) -> tuple[str, ...]:
    """What in a stage's change reads its input whole, however little changed; empty for most."""
    if isinstance(stage.keeping, Fixpoint) and stage.keeping.unrestricted is not None:
        return (stage.keeping.unrestricted,)
    found = []
    for node in (node for tree in _inside(stage.keeping) for node in walk(tree)):
        match node:
            case Window() if not node.partition:
                found.append("a window function without PARTITION BY")
            case TopK() if not (isinstance(node.input, Scan) and node.input.table.startswith(STATE)):
                found.append("ORDER BY with OFFSET and without LIMIT")
            case Project() if NOW in node.used:
                found.append("a value that depends on the time")
            case _:
                pass
    return tuple(dict.fromkeys(found))


def _inside(keeping: Keeping) -> tuple[Operator, ...]:
    match keeping:
        case Groups():
            return (keeping.aggregate.input,)
        case FirstRows():
            return (keeping.top.input,)
        case Fixpoint():
            return keeping.recursion.inputs
        case Rows():
            return (keeping.tree,)
