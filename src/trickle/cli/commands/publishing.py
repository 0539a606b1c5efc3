"""Commands about stream tables in PostgreSQL: publish, unpublish, publications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.arguments import StreamName
from trickle.cli.output import show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.times import when
from trickle.cli.working import working

if TYPE_CHECKING:
    from trickle.publish.listing import PublicationRow

NO_PUBLICATIONS = "nothing is published: trickle publish NAME postgresql://user@host/database"


def publish(
    session: Session,
    name: StreamName,
    dsn: Annotated[str, typer.Argument(metavar="ADDRESS", help="postgresql://user:password@host:5432/database")],
    table: Annotated[str | None, typer.Option("--table", "-t", help="The table there: schema.table.")] = None,
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="Column of its key; may be repeated.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the rows of a table that is there.")] = False,
) -> None:
    """Keep a stream table as a PostgreSQL table too."""
    with session.connect() as t, working(t.warehouse.engine, f"publishing {name}"):
        row = t.publish(name, dsn, table=table, key=key, replace=replace)
    show(session, Record(vars(row), f"{row.name} is published to {row.table} at {row.address}"))


def unpublish(
    session: Session,
    name: StreamName,
    table: Annotated[str | None, typer.Option("--table", "-t", help="Only from this table.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the table there.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Go on when the server does not answer.")] = False,
) -> None:
    """Keep a stream table in PostgreSQL no longer."""
    with session.connect() as t:
        gone = t.unpublish(name, table=table, drop=drop, force=force)
    show(session, Record({"unpublished": gone}, f"{name} is no longer published to {', '.join(gone)}"))


def publications(session: Session) -> None:
    """List the stream tables that are kept in PostgreSQL too."""
    with session.connect() as t:
        rows = t.list_publications()
    show_rows(session, rows, _brief, empty=NO_PUBLICATIONS)


def _brief(row: PublicationRow) -> dict[str, object]:
    return {
        "name": row.name,
        "table": row.table,
        "address": row.address,
        "status": row.status,
        "published": when(row.published_at),
        "problem": row.last_error,
    }
