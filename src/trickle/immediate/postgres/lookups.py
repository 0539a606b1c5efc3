"""Plans in a form in which PostgreSQL can use indexes (pure).

PostgreSQL finds rows by ``=``, and never by ``IS NOT DISTINCT FROM``; and a semi join that picks rows of a big table by
a few keys reads the whole table when it cannot tell that the keys are few. So

    a <=> b                          becomes   a = b                                   when one of them is never NULL
                                     or        a <=> b AND hash(a) = hash(b)           otherwise: the hash finds
                                                                                       candidates, a <=> b decides
    big semi few  on equalities      becomes   (distinct keys of few) join big         and for keys that may be NULL
                                     twice     once by = for keys without NULL, once by <=> for the others

    few join T at a derived state    becomes   (few join what stayed of T)  +  (few join what moved)

The state of a table that was derived from another (``faces.py``) is a union, into which PostgreSQL pushes no lookup.

Safe because with distinct keys a row of the big side meets one key at most, because NULL is never equal to anything by
``=``, and because equal values have equal hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.delta.building import both, call, is_not_null
from trickle.delta.optimize.join_order import is_small
from trickle.delta.plan import Plan, PlanStep
from trickle.delta.reach import conjuncts
from trickle.delta.weighted import union
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
    Scan,
    Step,
    TopK,
    UnionAll,
    Window,
    col,
    equal,
)

KEPT = "_kept"
MOVED = "_moved"

Derived = frozenset[tuple[str, Face]]
"""The states of tables that are what stayed (the table's name and ``KEPT``) and what moved (``MOVED``)."""


@dataclass(frozen=True)
class Certain:
    """The columns that are never NULL, of tables by their labels and of steps by their names."""

    tables: Mapping[str, frozenset[str]]
    steps: Mapping[str, frozenset[str]]

    def columns(self, tree: Operator) -> frozenset[str]:
        """The columns of a tree that are never NULL."""
        match tree:
            case Scan():
                known = self.tables.get(tree.table.removesuffix(KEPT).removesuffix(MOVED), frozenset())
                own = {name for column, name in tree.fields if column in known}
                return frozenset((*own, WEIGHT) if tree.face is Face.CHANGE else own)
            case Step():
                known = self.steps.get(tree.name, frozenset())
                return frozenset(name for column, name in tree.fields if column in known)
            case Project():
                below = self.columns(tree.input)
                return frozenset(output.name for output in tree.outputs if _is_certain(output.value, below))
            case Filter():
                return self.columns(tree.input) | _compared(tree.condition)
            case Join():
                return self._of_join(tree)
            case Aggregate():
                counts = {c.name for c in tree.calls if isinstance(c.value, exp.Anonymous) and c.value.name == "count"}
                return (self.columns(tree.input) & frozenset(tree.keys)) | counts
            case UnionAll():
                return frozenset.intersection(*map(self.columns, tree.parts))
            case Window() | TopK() | Generate():
                return self.columns(tree.input)
            case _:
                return frozenset()

    def _of_join(self, tree: Join) -> frozenset[str]:
        left = self.columns(tree.left)
        compared = frozenset[str]() if tree.condition is None else _compared(tree.condition)
        match tree.kind:
            case JoinKind.INNER:
                return left | self.columns(tree.right) | compared
            case JoinKind.SEMI:
                return left | (compared & frozenset(tree.left.columns))
            case JoinKind.LEFT | JoinKind.ANTI:
                return left


def _compared(condition: Expr) -> frozenset[str]:
    """The columns without which a condition cannot be true."""
    found: set[str] = set()
    for one in conjuncts(condition):
        if isinstance(one, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NEQ):
            found.update(side.name for side in (one.this, one.expression) if isinstance(side, exp.Column))
        elif isinstance(one, exp.Not) and isinstance(one.this.unnest(), exp.Is):
            inner = one.this.unnest()
            if isinstance(inner.this, exp.Column) and isinstance(inner.expression, exp.Null):
                found.add(inner.this.name)
    return frozenset(found)


def _is_certain(value: Expr, below: frozenset[str]) -> bool:
    if isinstance(value, exp.Paren | exp.Neg | exp.Cast):
        return _is_certain(value.this, below)
    return isinstance(value, exp.Literal | exp.Boolean) or (isinstance(value, exp.Column) and value.name in below)


def hashed(names: Iterable[str]) -> Expr:
    """A hash of columns, NULL among them; equal rows have the same."""
    row = exp.Anonymous(this="ROW", expressions=[col(name) for name in names])
    return call("hash_record_extended", row, exp.Literal.number(0))


def matching(pairs: Sequence[tuple[str, str]], certain: frozenset[str]) -> Expr:
    """Whether pairs of columns are equal, NULL with NULL, so that PostgreSQL can look for it; TRUE for none."""
    if not pairs:
        return exp.true()
    unsure = [(a, b) for a, b in pairs if not {a, b} & certain]
    tests: list[Expr] = [
        exp.NullSafeEQ(this=col(a), expression=col(b)) if (a, b) in unsure else equal(a, b) for a, b in pairs
    ]
    if unsure:
        left, right = hashed(a for a, _ in pairs), hashed(b for _, b in pairs)
        tests.insert(0, exp.EQ(this=left, expression=right))
    return both(*tests)


def with_lookups(plan: Plan, tables: Mapping[str, frozenset[str]], derived: Derived = frozenset()) -> Plan:
    """The plan with its joins in a form in which PostgreSQL can use indexes."""
    known: dict[str, frozenset[str]] = {}
    steps: list[PlanStep] = []
    for step in plan.steps:
        rewriting = _Rewriting(Certain(tables, known), derived)
        tree = rewriting.tree(step.tree)
        known[step.name] = rewriting.certain.columns(tree)
        steps.append(replace(step, tree=tree))
    return replace(plan, steps=tuple(steps), result=_Rewriting(Certain(tables, known), derived).tree(plan.result))


@dataclass(frozen=True)
class _Rewriting:
    certain: Certain
    derived: Derived

    def tree(self, tree: Operator) -> Operator:
        inputs = [self.tree(child) for child in tree.inputs]
        if any(new is not old for new, old in zip(inputs, tree.inputs, strict=True)):
            tree = tree.with_inputs(inputs)
        if not isinstance(tree, Join):
            return tree
        if tree.kind is JoinKind.INNER:
            return self._inner(tree)
        if tree.condition is None:
            return tree
        if tree.kind is JoinKind.SEMI and is_small(tree.right) and not is_small(tree.left):
            return self._picked(tree)
        return _respelled(tree, self.certain)

    def _inner(self, tree: Join) -> Operator:
        if tree.condition is not None:
            tree = _respelled(tree, self.certain)
        if is_small(tree.left) and (parts := self._parts(tree.right)):
            return UnionAll(tuple(replace(tree, right=part) for part in parts))
        if is_small(tree.right) and (parts := self._parts(tree.left)):
            return UnionAll(tuple(replace(tree, left=part) for part in parts))
        return tree

    def _parts(self, tree: Operator) -> tuple[Operator, ...]:
        """A derived state, or what is picked from it, in its two parts; none for anything else."""
        match tree:
            case Scan() if (tree.table, tree.face) in self.derived:
                return tuple(replace(tree, table=tree.table + part) for part in (KEPT, MOVED))
            case Filter() | Project():
                return tuple(replace(tree, input=part) for part in self._parts(tree.input))
            case _:
                return ()

    def _picked(self, tree: Join) -> Operator:
        """The rows of a big relation that a few keys pick, beginning with the keys."""
        pairs, rest = _pairs(tree)
        if not pairs:
            return _respelled(tree, self.certain)
        rows = self._by_keys(tree.left, tree.right, pairs)
        # What is more than equalities is asked of the rows that are left.
        return _respelled(replace(tree, left=rows), self.certain) if rest else rows

    def _by_keys(self, big: Operator, few: Operator, pairs: Mapping[tuple[str, str], bool]) -> Operator:
        wanted = tuple(dict.fromkeys(b for _, b in pairs))
        keys = Aggregate(Project(few, Output.keep(wanted)), wanted)
        sure = self.certain.columns(big) | self.certain.columns(keys)
        unsure = [b for (a, b), null_safe in pairs.items() if null_safe and not {a, b} & sure]
        equalities = both(*(equal(a, b) for a, b in pairs))
        if not unsure:
            return self._joined(keys, big, equalities)
        known = both(*(is_not_null(col(b)) for b in unsure))
        loose = matching([p for p in pairs if pairs[p]], sure)
        strict = [equal(a, b) for (a, b), null_safe in pairs.items() if not null_safe]
        return union(
            (
                self._joined(Filter(keys, known), big, equalities),
                self._joined(Filter(keys, exp.Not(this=exp.paren(known.copy()))), big, both(*strict, loose)),
            )
        )

    def _joined(self, keys: Operator, big: Operator, condition: Expr) -> Operator:
        parts = [
            Project(Join(JoinKind.INNER, keys, part, condition, small="left"), Output.keep(big.columns))
            for part in self._parts(big) or (big,)
        ]
        return union(parts)


def _respelled(tree: Join, certain: Certain) -> Join:
    assert tree.condition is not None
    sure = certain.columns(tree.left) | certain.columns(tree.right)
    pairs, rest = _pairs(tree)
    if not any(isinstance(one, exp.NullSafeEQ) for one in conjuncts(tree.condition)):
        return tree
    strict, loose = [p for p in pairs if not pairs[p]], [p for p in pairs if pairs[p]]
    return replace(tree, condition=both(*(equal(a, b) for a, b in strict), matching(loose, sure), *rest))


def _pairs(tree: Join) -> tuple[dict[tuple[str, str], bool], list[Expr]]:
    """The equalities of a join, left column first, each with whether NULL equals NULL; and what else there is."""
    assert tree.condition is not None
    left, right = frozenset(tree.left.columns), frozenset(tree.right.columns)
    pairs: dict[tuple[str, str], bool] = {}
    rest: list[Expr] = []
    for one in conjuncts(tree.condition):
        names = [s.name for s in (one.this, one.expression) if isinstance(s, exp.Column)] if _is_equality(one) else []
        if len(names) == 2 and names[0] in left and names[1] in right:
            pairs[names[0], names[1]] = isinstance(one, exp.NullSafeEQ)
        elif len(names) == 2 and names[1] in left and names[0] in right:
            pairs[names[1], names[0]] = isinstance(one, exp.NullSafeEQ)
        elif one != exp.true():
            rest.append(one)
    return pairs, rest


def _is_equality(one: Expr) -> bool:
    return isinstance(one, exp.EQ | exp.NullSafeEQ)
