"""Names of stages: folders of a table whose files nobody sees before a commit names them.

A refresh names its stages by a prefix that the catalog knows, so that what a dead process left can be told from what
a living one is writing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

INNER_FOLDER = "_trickle_state"
"""The folder below a table in which the tables lie that belong to it alone."""

_prefix: ContextVar[str | None] = ContextVar("trickle_stage_prefix", default=None)


def new_stage_id() -> str:
    """A name that no other stage has."""
    prefix, own = _prefix.get(), uuid.uuid4().hex
    return own if prefix is None else f"{prefix}-{own[:12]}"


def ahead_of(prefix: str) -> str:
    """The prefix of stages that a refresh commits before all others: whoever gives up the others does not find these.

    >>> ahead_of("0a1b")
    'ahead-0a1b'
    """
    return f"ahead-{prefix}"


@contextmanager
def stages_named(prefix: str) -> Iterator[None]:
    """Let every stage made inside the block begin with ``prefix``."""
    token = _prefix.set(prefix)
    try:
        yield
    finally:
        _prefix.reset(token)
