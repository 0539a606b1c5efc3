"""Names that no operator of a tree has yet."""

from __future__ import annotations

from collections.abc import Iterable

from trickle.operators import Operator, Recursion, RecursiveRef, walk
from trickle.operators.walk import free_columns


class Names:
    """The names in use. Spark compares names without regard to case, so they are kept apart without it too.

    >>> names = Names(["id", "ID_1"])
    >>> names.fresh("id"), names.fresh("id_1"), names.fresh("key")
    ('id_2', 'id_3', 'key')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
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
        return name
