"""Small tables that are taken for big ones, so that tests of a few rows go the way of millions."""

from __future__ import annotations

import pytest

from trickle.engine import Left, tuning
from trickle.lake import bases, few, indexes, lookup, merge, rewrite
from trickle.refresh import faces, making, narrowing


def take_all_for_big(patch: pytest.MonkeyPatch) -> None:
    """Nothing is read or written on the driver that Spark could read or write."""
    read_all_as_big(patch)
    patch.setattr(few.Few, "collected", lambda *_: None)
    patch.setattr(few.Few, "computed", lambda *_: Left.MANY)
    patch.setattr(rewrite, "_on_driver", lambda *_: False)
    patch.setattr(merge, "places_of", lambda *_: None)


def read_all_as_big(patch: pytest.MonkeyPatch) -> None:
    """Every table is read by Spark, and by ranges of keys."""
    patch.setattr(faces, "MOST_AT_HAND", -1)
    patch.setattr(lookup, "MOST_READ", -1)
    patch.setattr(tuning, "LIGHT_ROWS", 0)
    patch.setattr(tuning, "ALONE_ROWS", 0)
    patch.setattr(narrowing, "BIG_ROWS", 0)
    patch.setattr(narrowing, "HOLD_ROWS", 0)
    patch.setattr(narrowing, "PAGE_ROWS", 0)


def index_all(patch: pytest.MonkeyPatch) -> None:
    """Every file is searched by an index from the first time on, and that of the version that was looked up first."""
    patch.setattr(bases, "LEAST_ROWS", 0)
    patch.setattr(bases, "LOOKS", 1)
    patch.setattr(bases, "MOST_SHARE", 2.0)
    patch.setattr(indexes, "LEAST_ROWS", 0)
    patch.setattr(indexes.Indexes, "expect", lambda *_: True)


def take_changes_for_large(patch: pytest.MonkeyPatch, *, hinted: bool) -> None:
    """Nothing that is computed from changes is held on the driver, and perhaps no join says which side is small."""
    patch.setattr(making, "SMALL_CHANGE", -1)
    if not hinted:
        patch.setattr(faces, "MOST_BROADCAST", -1)
