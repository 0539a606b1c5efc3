"""Commands about tables of any kind: tables, table, describe, drop, attach, dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.arguments import DEFAULT_ROWS, RowLimit, TableName
from trickle.cli.output import print_json, show, show_rows
from trickle.cli.page import Page, Record
from trickle.cli.session import Session
from trickle.cli.values import to_json
from trickle.cli.working import working

if TYPE_CHECKING:
    from trickle.tables.views import DependencyRow, TableRow


def tables(session: Session) -> None:
    """List tables, views and stream tables."""
    with session.connect() as t:
        rows = t.tables()
    show_rows(session, rows, _brief_table, empty='no tables yet: trickle sql "CREATE TABLE ..."')


def _brief_table(row: TableRow) -> dict[str, object]:
    return {
        "name": row.name,
        "kind": row.kind.replace("_", " ").lower(),
        "primary key": row.primary_key,
        "comment": row.comment,
    }


def table(
    session: Session,
    name: TableName,
    limit: RowLimit = DEFAULT_ROWS,
    version: Annotated[int | None, typer.Option("--version", min=0, help="Read the table as of this version.")] = None,
) -> None:
    """Print the rows of a table, view or stream table."""
    from trickle.cli.shown import page_of

    with session.connect() as t, working(t.warehouse.engine, f"reading {name}"):
        page = page_of(t.table(name, version=version), limit)
    show(session, page)


def describe(
    session: Session,
    name: TableName,
    extended: Annotated[bool, typer.Option("--extended", "-x", help="Also what is known about the table.")] = False,
) -> None:
    """Show the columns of a table, view or stream table."""
    from trickle.cli.relations import facts_of

    with session.connect() as t, working(t.warehouse.engine, f"describing {name}"):
        rows = t.describe(name)
        facts = facts_of(t, name) if extended else {}
    if session.as_json:
        columns = [to_json(row) for row in rows]
        print_json({"columns": columns, "facts": facts} if extended else columns)
        return
    show_rows(session, rows, vars, empty="no columns")
    if extended:
        show(session, Page(("about", "value"), tuple(facts.items())))


def drop(
    session: Session,
    name: TableName,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop what is built on it too.")] = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Do not fail when it is not there.")] = False,
) -> None:
    """Drop a table, view or stream table, whichever it is."""
    from trickle.cli.relations import drop_any

    with session.connect() as t:
        show(session, drop_any(t, name, cascade=cascade, if_exists=if_exists))


def attach(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name for the table, or for the database.")],
    path: Annotated[str, typer.Argument(help="Folder or URI of the table, or postgresql://user@host/database.")],
    *,
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help="A table of the database; may be repeated.")
    ] = None,
    schema: Annotated[str, typer.Option("--schema", help="Schema of the database's tables.")] = "public",
    cdc_mode: Annotated[
        str, typer.Option("--cdc-mode", help="How the database is captured: auto, trigger, wal or polling.")
    ] = "auto",
    format: Annotated[str, typer.Option(help="delta, or what Spark reads: csv, json, parquet, ...")] = "delta",
    schedule: Annotated[str | None, typer.Option(help="How often what is polled is read: 30s, 5m.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="For Spark's reader of the format.")
    ] = None,
) -> None:
    """Register a Delta table that others write, tables of a PostgreSQL database, or files that Spark reads."""
    if path.startswith(("postgresql://", "postgres://")):
        with session.connect() as t, working(t.warehouse.engine, f"loading {name}"):
            made = t.attach_postgres(
                name, path, tables=table or None, schema=schema, cdc_mode=cdc_mode, schedule=schedule
            )
        names = [row.name for row in made]
        show(session, Record({"message": f"attached {name}", "tables": names}, f"attached {', '.join(names)}"))
        return
    if format != "delta":
        options = dict(pair.partition("=")[::2] for pair in option or ())
        with session.connect() as t, working(t.warehouse.engine, f"reading {path}"):
            row = t.attach_files(name, path, format=format, options=options, schedule=schedule)
        show(session, Record(vars(row), f"attached {row.name}, version {row.version}"))
        return
    with session.connect() as t:
        t.attach_table(name, path)
    show(session, Record({"message": f"attached {name}", "location": path}, f"attached {name}"))


def dependencies(session: Session) -> None:
    """Show which table reads which."""
    with session.connect() as t:
        rows = t.dependencies()
    show_rows(session, rows, _brief_dependency, empty="no view or stream table yet")


def _brief_dependency(row: DependencyRow) -> dict[str, object]:
    return {
        "name": row.name,
        "reads": row.source,
        "kind": row.source_kind.replace("_", " ").lower(),
        "directly": row.direct,
        "columns": row.columns,
    }
