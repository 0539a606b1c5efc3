"""Names of groups and gates: free text that people type, compared without case."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from trickle.algebra.names import MAX_LENGTH, nearest
from trickle.errors import DuplicateName, InvalidName, InvalidOption


def check_label(name: str, what: str) -> str:
    """The name without spaces around it; InvalidName when it cannot be one."""
    label = name.strip()
    if not label or len(label) > MAX_LENGTH or any(unicodedata.category(c) in ("Cc", "Cs") for c in label):
        raise InvalidName(
            f"not a name for a {what}: {name[:40]!r}",
            hint=f"use 1 to {MAX_LENGTH} characters, without control characters",
        )
    return label


def key(name: str) -> str:
    """What is compared.

    >>> key(" Nightly ")
    'nightly'
    """
    return name.strip().lower()


def unknown_label(name: str, what: str, known: Iterable[str]) -> InvalidOption:
    """The error for a name that is not there."""
    close = nearest(name, known)
    return InvalidOption(f"no {what} is called {name!r}", hint=f"did you mean {close!r}?" if close else None)


def taken_label(name: str, what: str) -> DuplicateName:
    """The error for a name that is there already."""
    return DuplicateName(f"there is a {what} {name!r} already", hint="choose another name, or drop it first")
