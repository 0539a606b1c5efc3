"""Our schema in the user's database."""

from __future__ import annotations

from trickle.postgres.names import identifier

SCHEMA = "trickle_immediate"
"""The schema in the user's database that has everything of ours but the stream tables themselves."""


def ours(name: str) -> str:
    """The name of an object in our schema."""
    return identifier(SCHEMA, name)
