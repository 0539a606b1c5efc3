"""The SQL texts of trees that come again.

Plans are made once for a query (``delta/stages.py``) and run at every refresh; writing them as SQL takes as long as
many a small plan takes to run. So the text of a tree is remembered, with a mark in the place of each leaf's name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from trickle.algebra.names import INTERNAL_PREFIX, quote
from trickle.operators import Operator, Scan, Step
from trickle.sql.lower import lower

LeafKey = Callable[[Scan | Step], str]
_REMEMBERED = 1_000


class Texts:
    """The latest texts, known by the identity of their trees."""

    def __init__(self) -> None:
        self._lock = Lock()
        # The tree is kept, so that no other can come to have its identity.
        self._known: OrderedDict[tuple[int, bool], tuple[Operator, str]] = OrderedDict()

    def text(self, tree: Operator, key_of: LeafKey, views: Mapping[str, str], *, again: bool, alone: bool) -> str:
        """The text of a tree whose leaves are called as ``views`` says, by their keys and always in the same order.

        ``again`` says that the tree will come again, ``alone`` that one task does all of it.
        """
        marks = {key: f"{INTERNAL_PREFIX}leaf_{place}" for place, key in enumerate(views)}
        with self._lock:
            found = self._known.get((id(tree), alone))
        if found is None:
            found = (tree, lower(tree, lambda leaf: marks[key_of(leaf)], alone=alone))
            if again:
                self._remember(found, alone)
        return _named(found[1], list(marks.values()), list(views.values()))

    def _remember(self, entry: tuple[Operator, str], alone: bool) -> None:
        with self._lock:
            self._known[id(entry[0]), alone] = entry
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def _named(text: str, marks: Sequence[str], names: Sequence[str]) -> str:
    for mark, name in zip(marks, names, strict=True):
        text = text.replace(quote(mark), quote(name))
    return text
