"""Commands that make and change stream tables: create, alter, suspend, resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.arguments import SqlFile, StreamName, parse_options, read_text
from trickle.cli.output import show
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.working import working
from trickle.errors import InvalidOption

if TYPE_CHECKING:
    from trickle.tables.views import StreamTableRow

Query = Annotated[str | None, typer.Argument(metavar="[QUERY]", help="SELECT that defines it; '-' reads stdin.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="A further option; may be repeated.")
]


def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name for the stream table.")],
    query: Query = None,
    *,
    file: SqlFile = None,
    schedule: Annotated[
        str, typer.Option(help="30s, 1h30m, a cron expression, @hourly, or calculated.")
    ] = "calculated",
    refresh_mode: Annotated[str, typer.Option(help="AUTO, DIFFERENTIAL, FULL or IMMEDIATE.")] = "AUTO",
    no_initialize: Annotated[bool, typer.Option("--no-initialize", help="Leave it empty until a refresh.")] = False,
    or_replace: Annotated[bool, typer.Option("--or-replace", help="Change the one that is there.")] = False,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Keep the one that is there.")] = False,
    option: Options = None,
) -> None:
    """Make a stream table and fill it."""
    text = read_text(query, file)
    if text is None:
        raise InvalidOption(f"the query of {name} is missing", hint=f'trickle create {name} "SELECT ..."')
    if or_replace and if_not_exists:
        raise InvalidOption("--or-replace and --if-not-exists contradict each other", hint="leave one of them out")
    options = parse_options(option or [])
    with session.connect() as t:
        known = {row.name for row in t.status()}
        make = t.create_stream_table
        if or_replace:
            make = t.create_or_replace_stream_table
        elif if_not_exists:
            make = t.create_stream_table_if_not_exists
        with working(t.warehouse.engine, f"creating {name}"):
            row = make(
                name, text, schedule=schedule, refresh_mode=refresh_mode, initialize=not no_initialize, **options
            )
    did = "created" if row.name not in known else "replaced" if or_replace else "exists already"
    _show_state(session, row, f"stream table {row.name} {did}")


def alter(
    session: Session,
    name: StreamName,
    query: Query = None,
    *,
    file: SqlFile = None,
    schedule: Annotated[str | None, typer.Option(help="A new schedule.")] = None,
    refresh_mode: Annotated[str | None, typer.Option(help="A new refresh mode.")] = None,
    no_initialize: Annotated[bool, typer.Option("--no-initialize", help="Do not refill it with a new query.")] = False,
    option: Options = None,
) -> None:
    """Change the query or the options of a stream table. An empty value clears an option: -o tier="""
    text = read_text(query, file)
    changes = parse_options(option or [])
    changes |= {"schedule": schedule} if schedule is not None else {}
    changes |= {"refresh_mode": refresh_mode} if refresh_mode is not None else {}
    if text is None and not changes:
        raise InvalidOption("nothing to change", hint=f"trickle alter {name} --schedule 30s")
    with session.connect() as t, working(t.warehouse.engine, f"altering {name}"):
        row = t.alter_stream_table(name, query=text, initialize=not no_initialize, **changes)
    _show_state(session, row, f"stream table {row.name} altered")


def suspend(session: Session, name: StreamName) -> None:
    """Refuse refreshes of a stream table until it is resumed."""
    with session.connect() as t:
        row = t.suspend_stream_table(name)
    _show_state(session, row, f"stream table {row.name} suspended")


def resume(session: Session, name: StreamName) -> None:
    """Let a suspended stream table be refreshed again, with its errors forgotten."""
    with session.connect() as t:
        row = t.resume_stream_table(name)
    _show_state(session, row, f"stream table {row.name} resumed")


def _show_state(session: Session, row: StreamTableRow, did: str) -> None:
    schedule = "with its consumers" if row.schedule == "calculated" else row.schedule
    show(session, Record(vars(row), f"{did}: {row.status}, schedule {schedule}, mode {row.refresh_mode}"))
