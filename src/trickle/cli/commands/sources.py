"""Commands about attached PostgreSQL databases: sources, ingest, detach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.output import show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.times import when

if TYPE_CHECKING:
    from trickle.replicas.ingest import IngestResult
    from trickle.replicas.listing import CdcHealthRow, SourceRow

NO_SOURCES = "no database is attached: trickle attach NAME postgresql://user@host/database"
DatabaseName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the attached database.")]
SomeDatabase = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of the attached database.")]


def sources(
    session: Session,
    health: Annotated[bool, typer.Option("--health", help="Ask the servers how capture is doing.")] = False,
    status: Annotated[bool, typer.Option("--status", help="How changes are captured, and why so.")] = False,
) -> None:
    """List the tables of attached PostgreSQL databases."""
    with session.connect() as t:
        if status:
            show_rows(session, t.cdc_status(), vars, empty=NO_SOURCES)
        elif health:
            show_rows(session, t.check_cdc_health(), _brief_health, empty=NO_SOURCES)
        else:
            show_rows(session, t.list_sources(), _brief_source, empty=NO_SOURCES)


def _brief_source(row: SourceRow) -> dict[str, object]:
    return {
        "name": row.name,
        "source": row.source,
        "address": row.address,
        "status": row.status,
        "ingested": when(row.ingested_at),
        "problem": row.problem or row.last_error,
    }


def _brief_health(row: CdcHealthRow) -> dict[str, object]:
    return {"database": row.database, "source": row.source, "state": row.state, "message": row.message}


def ingest(session: Session, name: SomeDatabase = None) -> None:
    """Bring the replicas of attached databases to the present."""
    with session.connect() as t:
        rows = t.ingest(name)
    show_rows(session, rows, _brief_result, empty="nothing has changed")


def _brief_result(row: IngestResult) -> dict[str, object]:
    return {
        "name": row.name,
        "inserted": row.rows_inserted,
        "deleted": row.rows_deleted,
        "loaded": row.loaded,
        "problem": row.problem,
    }


def detach(
    session: Session,
    name: DatabaseName,
    table: Annotated[list[str] | None, typer.Option("--table", "-t", help="Only this table; may be repeated.")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop what reads them too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Go on when the server does not answer.")] = False,
) -> None:
    """Let go of an attached PostgreSQL database."""
    with session.connect() as t:
        gone = t.detach(name, tables=table or None, cascade=cascade, force=force)
    show(session, Record({"detached": gone}, f"detached {', '.join(gone)}"))
