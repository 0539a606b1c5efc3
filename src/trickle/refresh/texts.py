"""The SQL texts of trees that come again.

Plans are made once for a query (``delta/stages.py``) and run at every refresh; writing them as SQL takes as long as
many a small plan takes to run. So the text of a tree is remembered, with a mark in the place of each leaf's name. What
a refresh makes of a tree, with rows at hand in the place of tables, comes again too: it is known by the tree that it
was made of and by what was put in which place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from trickle.algebra.names import INTERNAL_PREFIX, quote
from trickle.delta.typed import Types, typed_nulls
from trickle.operators import Operator, Scan, Step
from trickle.refresh.views import View
from trickle.sql.lower import lower

LeafKey = Callable[[Scan | Step], str]
_REMEMBERED = 1_000


@dataclass(frozen=True)
class Known:
    """What a tree is known by when it comes again: the lasting tree that it was made of, and what was done to it."""

    origin: Operator
    changes: tuple[Hashable, ...] = ()
    parts: tuple[Operator, ...] = ()
    """The origins of the trees that were put in the place of steps."""

    def then(self, *changes: Iterable[Hashable]) -> Known:
        """The same after further changes."""
        return replace(self, changes=(*self.changes, *(tuple(one) for one in changes)))

    def having(self, name: str, part: Known) -> Known:
        """The same with a tree in the place of a step."""
        changed = (*self.changes, (name, id(part.origin), part.changes))
        return Known(self.origin, changed, (*self.parts, part.origin, *part.parts))


class Texts:
    """The latest texts, known by the identity of the trees that they come from."""

    def __init__(self) -> None:
        self._lock = Lock()
        # What a tree is known by is kept, so that no other tree can come to have the identity of its origin.
        self._known: OrderedDict[tuple[int, Hashable, bool], tuple[Known, str]] = OrderedDict()

    def text(
        self,
        tree: Operator,
        key_of: LeafKey,
        views: Mapping[str, View],
        types: Types,
        *,
        known: Known | None,
        alone: bool,
    ) -> str:
        """The text of a tree whose leaves are where ``views`` says, by their keys and always in the same order.

        ``types`` are those of columns that NULL takes the place of. ``known`` is what the tree will come again as, if
        it will; ``alone`` says that one task does all of it.
        """
        marks = {key: f"{INTERNAL_PREFIX}leaf_{place}" for place, key in enumerate(views)}
        place = None if known is None else (id(known.origin), known.changes, alone)
        with self._lock:
            found = None if place is None else self._known.get(place)
        if found is not None:
            text = found[1]
        else:
            text = lower(typed_nulls(tree, types), lambda leaf: marks[key_of(leaf)], alone=alone, is_nested=True)
            if place is not None and known is not None:
                self._remember(place, (known, text))
        return _named(text, list(marks.values()), list(views.values()))

    def _remember(self, place: tuple[int, Hashable, bool], entry: tuple[Known, str]) -> None:
        with self._lock:
            self._known[place] = entry
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def _named(text: str, marks: Sequence[str], views: Sequence[View]) -> str:
    """The text with the names of views in the place of marks. A leaf inside of a view stands there whole where it is
    read once, and else is defined under its mark.
    """
    defined = []
    for mark, view in zip(marks, views, strict=True):
        if view.column is None:
            text = text.replace(quote(mark), quote(view.name))
            continue
        rows = f"(SELECT inline({quote(view.column)}) FROM {quote(view.name)})"
        if text.count(quote(mark)) == 1:
            text = text.replace(quote(mark), rows)
        else:
            defined.append(f"{quote(mark)} AS {rows}")
    if not defined:
        return text
    rest = text.removeprefix("WITH ")
    return f"WITH {', '.join(defined)}{' ' if rest == text else ', '}{rest}"
