"""Names and values as PostgreSQL's SQL spells them."""

from __future__ import annotations

from psycopg import sql


def identifier(*parts: str) -> str:
    """A name, quoted, with what qualifies it before it.

    >>> identifier("public", 'my "big" orders')
    '"public"."my ""big"" orders"'
    """
    return sql.Identifier(*parts).as_string(None)


def literal(value: str | int) -> str:
    """A value.

    >>> literal("it's")
    "'it''s'"
    """
    return sql.Literal(value).as_string(None).strip()
