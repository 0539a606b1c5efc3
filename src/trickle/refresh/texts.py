"""The SQL texts of trees that come again.

Plans are made once for a query (``delta/stages.py``) and run at every refresh; writing them as SQL takes as long as
many a small plan takes to run. So the text of a tree is remembered, with a mark in the place of each leaf's name. What
a refresh makes of a tree, with rows at hand in the place of tables, comes again too: it is known by the tree that it
was made of and by what was put in which place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from trickle.algebra.names import INTERNAL_PREFIX, quote
from trickle.operators import Operator, Scan, Step
from trickle.sql.lower import lower

LeafKey = Callable[[Scan | Step], str]
_REMEMBERED = 1_000


@dataclass(frozen=True)
class Known:
    """What a tree is known by when it comes again: the lasting tree that it was made of, and what was done to it."""

    origin: Operator
    changes: tuple[Hashable, ...] = ()

    def then(self, *changes: Iterable[Hashable]) -> Known:
        """The same after further changes."""
        return Known(self.origin, (*self.changes, *(tuple(one) for one in changes)))


class Texts:
    """The latest texts, known by the identity of the trees that they come from."""

    def __init__(self) -> None:
        self._lock = Lock()
        # The origin is kept, so that no other tree can come to have its identity.
        self._known: OrderedDict[tuple[int, Hashable, bool], tuple[Operator, str]] = OrderedDict()

    def text(
        self, tree: Operator, key_of: LeafKey, views: Mapping[str, str], *, known: Known | None, alone: bool
    ) -> str:
        """The text of a tree whose leaves are called as ``views`` says, by their keys and always in the same order.

        ``known`` is what the tree will come again as, if it will; ``alone`` says that one task does all of it.
        """
        marks = {key: f"{INTERNAL_PREFIX}leaf_{place}" for place, key in enumerate(views)}
        if known is None:
            text = lower(tree, lambda leaf: marks[key_of(leaf)], alone=alone)
        else:
            place = (id(known.origin), known.changes, alone)
            with self._lock:
                found = self._known.get(place)
            text = lower(tree, lambda leaf: marks[key_of(leaf)], alone=alone) if found is None else found[1]
            if found is None:
                self._remember(place, (known.origin, text))
        return _named(text, list(marks.values()), list(views.values()))

    def _remember(self, place: tuple[int, Hashable, bool], entry: tuple[Operator, str]) -> None:
        with self._lock:
            self._known[place] = entry
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def _named(text: str, marks: Sequence[str], names: Sequence[str]) -> str:
    for mark, name in zip(marks, names, strict=True):
        text = text.replace(quote(mark), quote(name))
    return text
