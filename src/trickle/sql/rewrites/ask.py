"""Groups that nobody asks for are not made.

A correlated subquery becomes an aggregate of everything, joined with the rows that ask for it:

    (part where brand = 'x')  join  (lineitem grouped by l_partkey) on p_partkey = l_partkey

Two million parts have groups, which are stored and kept, and two thousand are asked for. So the tables that the
asking column comes from restrict what is grouped:

    ... join  ((lineitem semi (part where brand = 'x') on l_partkey = p_partkey) grouped by l_partkey) on ...

Safe because groups are left out whole, and only those of which the join's equality is true for no row: what restricts
is a table that has every value of the asking column, with no condition but those that hold for all rows that ask. NULL
equals nothing on either side. Where the column comes from a table without conditions, another table may restrict it by
a join; its column has every value if both are of one type, for then being equal is passed on.

It is done for conditions that choose (``=``, ``IN``, ``LIKE``): others leave most of the rows, as a rule, and a chosen
table costs a lookup at each refresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    Scan,
    col,
)
from trickle.sql.clock import has_clock
from trickle.sql.rewrites.conditions import all_of, chooses, conjuncts, is_volatile, match_of
from trickle.sql.rewrites.copy import fresh_copy
from trickle.sql.rewrites.kinds import Kinds, Schemas, kinds_of
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.semi import semi_joined


def ask(tree: Operator, schemas: Schemas) -> Operator:
    """The same relation, of which groups that are joined with chosen rows are only those."""
    return _Asking(kinds_of(tree, schemas), Names.of(tree)).tree(tree)


@dataclass(frozen=True)
class _Asking:
    kinds: Kinds
    names: Names

    def tree(self, node: Operator) -> Operator:
        # What a recursion's step reads is the engine's to restrict, round by round.
        if isinstance(node, Recursion) or not node.inputs:
            return node
        node = node.with_inputs([self.tree(child) for child in node.inputs])
        return self.join(node) if isinstance(node, Join) else node

    def join(self, node: Join) -> Operator:
        left, right = node.left, node.right
        for one, other in _equalities(node):
            right = self.groups(right, other, left, one) or right
            if node.kind is JoinKind.INNER:
                left = self.groups(left, one, right, other) or left
        return replace(node, left=left, right=right)

    def groups(self, tree: Operator, key: str, asking: Operator, column: str) -> Operator | None:
        """The tree with groups by a key only for values that the asking side has; None where it has no such groups."""
        match tree:
            case Aggregate() if key in tree.keys:
                chosen = self.chosen(asking, column)
                if chosen is None:
                    return None
                keys, _ = fresh_copy(chosen, self.names)
                condition = exp.EQ(this=col(key), expression=col(*keys.columns))
                return replace(tree, input=semi_joined(tree.input, keys, condition))
            case Filter():
                below = self.groups(tree.input, key, asking, column)
                return below and replace(tree, input=below)
            case Project():
                value = next(output.value for output in tree.outputs if output.name == key)
                below = self.groups(tree.input, value.name, asking, column) if isinstance(value, exp.Column) else None
                return below and replace(tree, input=below)
            case _:
                return None

    def chosen(self, tree: Operator, column: str, conditions: Sequence[Expr] = ()) -> Operator | None:
        """A relation of one column with all values that a column of the tree has; None if it would have most others."""
        match tree:
            case Scan():
                plain = [part for part in conditions if not is_volatile(part) and not has_clock(part)]
                if not any(map(chooses, plain)):
                    return None
                return Project(Filter(tree, all_of(plain) or exp.true()), Output.keep((column,)))
            case Filter():
                return self.chosen(tree.input, column, [*conjuncts(tree.condition), *conditions])
            case Project():
                value = next(output.value for output in tree.outputs if output.name == column)
                # Conditions above it, where they had to stay, use what it makes.
                return self.chosen(tree.input, value.name) if isinstance(value, exp.Column) else None
            case Join():
                return self.chosen_by_join(tree, column)
            case _:
                return None

    def chosen_by_join(self, tree: Join, column: str) -> Operator | None:
        is_left = column in tree.left.columns
        if not is_left and tree.kind is not JoinKind.INNER:
            return None
        found = self.chosen(tree.left if is_left else tree.right, column)
        if found is not None or tree.kind not in (JoinKind.INNER, JoinKind.SEMI):
            return found
        for one, other in _equalities(tree):
            mine, theirs = (one, other) if is_left else (other, one)
            if mine == column and self.kinds.get(one) == self.kinds.get(other) is not None:
                found = found or self.chosen(tree.right if is_left else tree.left, theirs)
        return found


def _equalities(join: Join) -> Iterator[tuple[str, str]]:
    """Columns of the left and the right that the join's condition says are equal."""
    for part in conjuncts(join.condition):
        match = match_of(part, frozenset(join.right.columns))
        if match is None or match.null_safe:
            continue
        if isinstance(match.inner, exp.Column) and isinstance(match.outer, exp.Column):
            yield match.outer.name, match.inner.name
