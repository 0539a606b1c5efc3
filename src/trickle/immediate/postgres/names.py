"""Names and values as PostgreSQL's SQL spells them. Nothing enters a text but through here or through sqlglot."""

from __future__ import annotations

from psycopg import sql

SCHEMA = "trickle_immediate"
"""The schema in the user's database that has everything of ours but the stream tables themselves."""


def identifier(*parts: str) -> str:
    """A name, quoted, with what qualifies it before it.

    >>> identifier("public", 'my "big" orders')
    '"public"."my ""big"" orders"'
    """
    return sql.Identifier(*parts).as_string(None)


def ours(name: str) -> str:
    """The name of an object in our schema."""
    return identifier(SCHEMA, name)


def literal(value: str | int) -> str:
    """A value.

    >>> literal("it's")
    "'it''s'"
    """
    return sql.Literal(value).as_string(None).strip()
