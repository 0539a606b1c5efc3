"""Table names behind the Tab key: read from the catalog, without Spark, and silent about whatever goes wrong."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import typer

from trickle.cli.session import DEFAULT_WAREHOUSE

CATALOG_FILE = "trickle.db"
"""As in ``trickle.api``, which takes too long to import for a press of a key."""


def any_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Every table, view and stream table."""
    return _matching(ctx, incomplete, streams_only=False)


def stream_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Every stream table."""
    return _matching(ctx, incomplete, streams_only=True)


def _matching(ctx: typer.Context, incomplete: str, *, streams_only: bool) -> list[str]:
    with suppress(Exception):
        found = _names(_catalog_url(ctx), streams_only=streams_only)
        return [name for name in found if name.lower().startswith(incomplete.lower())]
    return []


def _catalog_url(ctx: typer.Context) -> str:
    from trickle.catalog.urls import file_url

    warehouse = _given(ctx, "warehouse") or DEFAULT_WAREHOUSE
    return _given(ctx, "catalog") or file_url(Path(warehouse).expanduser().absolute() / CATALOG_FILE)


def _given(ctx: typer.Context, option: str) -> str | None:
    """An option's value: given after the command's name, or before it."""
    places = [ctx.params]
    while ctx.parent is not None:
        ctx = cast(typer.Context, ctx.parent)
        places.append(ctx.params)
    return next((str(params[option]) for params in places if params.get(option)), None)


def _names(url: str, *, streams_only: bool) -> list[str]:
    from trickle.catalog import relations
    from trickle.catalog.records import Kind
    from trickle.catalog.store import Catalog

    catalog = Catalog.open(url, create=False)
    try:
        with catalog.read() as tx:
            found = relations.listing(tx)
    finally:
        catalog.close()
    return [str(r.name) for r in found if not streams_only or r.kind is Kind.STREAM_TABLE]
