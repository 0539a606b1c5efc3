"""The grouping sets of GROUP BY: plain keys, ROLLUP, CUBE, GROUPING SETS, and their products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr

MOST_SETS = 64
Group = frozenset[int]


@dataclass(frozen=True)
class Grouping:
    """The keys, each once, and the sets of their places; a plain GROUP BY has one set with all keys."""

    keys: tuple[Expr, ...]
    sets: tuple[Group, ...]
    is_plain: bool


class _Keys:
    def __init__(self, resolve: Callable[[Expr], Expr]) -> None:
        self._resolve = resolve
        self.places: dict[Expr, int] = {}

    def place(self, node: Expr) -> int:
        key = self._resolve(node).unnest()
        return self.places.setdefault(key, len(self.places))

    def composite(self, node: Expr) -> Group:
        """A key, or several in parentheses."""
        if isinstance(node, exp.Tuple):
            return frozenset(self.place(each) for each in node.expressions)
        return frozenset((self.place(node.unnest()),))


def grouping_of(group: exp.Group | None, resolve: Callable[[Expr], Expr]) -> Grouping:
    """The grouping of a GROUP BY; of none: one group."""
    if group is None:
        return Grouping((), (frozenset(),), is_plain=True)
    keys = _Keys(resolve)
    parts = [_sets(keys, each) if not _is_plain(each) else [_one(keys, each)] for each in group.expressions]
    plain = all(_is_plain(each) for each in group.expressions)
    for style in ("rollup", "cube", "grouping_sets"):
        for each in group.args.get(style) or ():
            # GROUP BY a, b WITH ROLLUP and GROUP BY a, b GROUPING SETS (...) are about all keys before them.
            listed = each.expressions or group.expressions
            parts, plain = [_sets(keys, type(each)(expressions=list(listed)))], False
    _check_size(parts)
    sets = tuple(frozenset().union(*chosen) for chosen in product(*parts))
    return Grouping(tuple(keys.places), sets, is_plain=plain)


def _one(keys: _Keys, node: Expr) -> Group:
    """A plain key. Outside of grouping sets ``(a, b)`` is a struct, and ``()`` nothing."""
    is_nothing = isinstance(node, exp.Tuple) and not node.expressions
    return frozenset() if is_nothing else frozenset((keys.place(node.unnest()),))


def _is_plain(node: Expr) -> bool:
    return not isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)


def _sets(keys: _Keys, node: Expr) -> list[Group]:
    match node:
        case exp.Rollup():
            groups = [keys.composite(each) for each in node.expressions]
            return [frozenset().union(*groups[:size]) for size in range(len(groups), -1, -1)]
        case exp.Cube():
            groups = [keys.composite(each) for each in node.expressions]
            if len(groups) > MOST_SETS.bit_length():
                raise _too_many(2 ** len(groups))
            sizes = range(len(groups), -1, -1)
            return [frozenset().union(*chosen) for size in sizes for chosen in combinations(groups, size)]
        case exp.GroupingSets():
            return [group for each in node.expressions for group in _sets(keys, each)]
        case _:
            return [keys.composite(node)]


def _check_size(parts: Sequence[Sequence[Group]]) -> None:
    size = 1
    for part in parts:
        size *= len(part)
    if size > MOST_SETS:
        raise _too_many(size)


def _too_many(size: int) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"GROUP BY has {size} grouping sets", detail=f"at most {MOST_SETS} are kept", hint="leave out sets not needed"
    )
