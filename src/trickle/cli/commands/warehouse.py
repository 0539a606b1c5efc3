"""Commands about the warehouse as a whole: init, version, settings, vacuum."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from trickle.cli.arguments import TableName
from trickle.cli.names import any_table
from trickle.cli.output import print_line, show, show_rows
from trickle.cli.page import Page, Record
from trickle.cli.session import DEFAULT_WAREHOUSE, Session
from trickle.errors import WarehouseMissing
from trickle.settings import describe as describe_settings

SETTINGS_FILE = "trickle.toml"


def init(
    session: Session,
    path: Annotated[str | None, typer.Argument(help="Folder of the warehouse; as --warehouse.")] = None,
) -> None:
    """Make a warehouse. One that is there stays as it is."""
    session = session.overridden(path, None, None, False)
    try:
        with session.connect() as t:
            place, made = t.warehouse.root, False
    except WarehouseMissing:
        with session.connect(create=True) as t:
            place, made = t.warehouse.root, True
    settings = _write_settings(Path(place.uri)) if place.is_local else None
    option = "" if session.warehouse == DEFAULT_WAREHOUSE else f"-w {session.warehouse} "
    lines = [f"{'made a warehouse at' if made else 'there is a warehouse at'} {place.uri}"]
    lines += [f"settings: {settings}"] if settings else []
    lines += [f'next: trickle {option}sql "CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12, 2))"']
    show(session, Record({"warehouse": place.uri, "created": made, "settings": settings}, "\n".join(lines)))


def _write_settings(folder: Path) -> str:
    file = folder / SETTINGS_FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(settings_template(), encoding="utf-8")
    return str(file)


def settings_template() -> str:
    """A settings file in which everything is at its default."""
    lines = [
        "# Settings of this warehouse, all at their defaults. Remove the '#' before a name to change it.",
        "[trickle]",
    ]
    for name, _, default, meaning in describe_settings():
        lines += [f"# {meaning}", f"# {name} = {default}"]
    return "\n".join(lines) + "\n"


def version(session: Session) -> None:
    """Show the version of Trickle and of what it stands on."""
    found = {"trickle": _version("trickle-spark"), "python": platform.python_version()}
    found |= {package: _version(package) for package in ("pyspark", "deltalake", "sqlglot", "sqlalchemy")}
    rest = ", ".join(f"{name} {number}" for name, number in found.items() if name != "trickle")
    show(session, Record(found, f"trickle {found['trickle']} ({rest})"))


def _version(distribution: str) -> str:
    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return "unknown"


def settings(session: Session) -> None:
    """Show all settings with the values in force. SET trickle.<name> = <value> changes one."""
    with session.connect() as t:
        rows = t.settings()
    show_rows(session, rows, vars, empty="no settings")


def vacuum(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(help="Only this table; all by default.", autocompletion=any_table)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which files would go.")] = False,
) -> None:
    """Remove files and history that nobody needs any more."""
    with session.connect() as t:
        gone = t.vacuum(name, dry_run=dry_run)
    if session.as_json or gone:
        show(session, Page(("file",), tuple((path,) for path in gone)))
    else:
        print_line("nothing to remove")


def compact(session: Session, name: TableName) -> None:
    """Write a table's small files together."""
    with session.connect() as t:
        done = t.compact(name)
    show(session, Record(vars(done), f"{done.table}: files before {done.files_before}, now {done.files_after}"))
