"""Names that no operator of a tree has yet."""

from __future__ import annotations

from collections.abc import Iterable

from trickle.operators import Expr, Operator, Recursion, RecursiveRef, walk
from trickle.operators.walk import free_columns
from trickle.sql.rewrites.conditions import Match
from trickle.sql.rewrites.kinds import kind_of, same_kind


class Names:
    """The names in use. Spark compares names without regard to case, so they are kept apart without it too.

    >>> names = Names(["id", "ID_1"])
    >>> names.fresh("id"), names.fresh("id_1"), names.fresh("key")
    ('id_2', 'id_3', 'key')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.kinds: dict[str, str] | None = None
        """The types of columns, as far as they are known; None where nobody asks for them."""
        self._taken = {name.lower() for name in taken}
        self._next: dict[str, int] = {}

    @staticmethod
    def of(tree: Operator) -> Names:
        """The names of a whole tree: of columns, of references to the outside, and of recursions."""
        names = Names(free_columns(tree))
        for node in walk(tree):
            names._taken.update(name.lower() for name in node.columns)
            if isinstance(node, Recursion | RecursiveRef):
                names._taken.add(node.name.lower())
        return names

    def fresh(self, like: str) -> str:
        """A name that is not taken, and is from now on."""
        stem, _, number = like.rpartition("_")
        base = stem if stem and number.isdecimal() else like
        name = like
        while name.lower() in self._taken:
            self._next[base] = self._next.get(base, 0) + 1
            name = f"{base}_{self._next[base]}"
        self._taken.add(name.lower())
        if self.kinds is not None and like in self.kinds:
            # A copy of a column, as a rule. Whoever names something else after it says so.
            self.kinds[name] = self.kinds[like]
        return name

    def fresh_for(self, key: Expr) -> str:
        """A name for a key that is computed."""
        name = self.fresh("key")
        kind = None if self.kinds is None else kind_of(key, self.kinds)
        if self.kinds is not None and kind is not None:
            self.kinds[name] = kind
        return name

    def is_exact(self, match: Match) -> bool:
        """Whether both sides of a match are compared without a conversion that makes different values equal."""
        if self.kinds is None:
            return True
        return same_kind(kind_of(side, self.kinds) for side in (match.inner, match.outer)) is not None
