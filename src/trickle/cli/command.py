"""How functions become the commands of an application.

A command is a function that takes a Session first. The options that choose the warehouse and the form of the output
may stand before or after its name: ``trickle --json status`` and ``trickle status --json`` are the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from trickle.cli.session import DEFAULT_WAREHOUSE, Session

GLOBAL_PANEL = "Global options"

Warehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse", "-w", metavar="PATH", help="Folder or URI of the warehouse.", rich_help_panel=GLOBAL_PANEL
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Database of the catalog, if not in the warehouse.", rich_help_panel=GLOBAL_PANEL),
]
Spark = Annotated[
    str | None,
    typer.Option(metavar="MASTER", help="Spark master, or sc://host:port.", rich_help_panel=GLOBAL_PANEL),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of text.", rich_help_panel=GLOBAL_PANEL)
]

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_GLOBAL = {
    "warehouse": (Warehouse, None),
    "catalog": (Catalog, None),
    "spark": (Spark, None),
    "as_json": (AsJson, False),
}


Function: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class Group:
    """Commands under one word, such as ``trickle fuse status``."""

    name: str
    help: str
    commands: Mapping[str, Function]


def application(commands: Iterable[Function | Group]) -> typer.Typer:
    """The application that has these commands."""
    app = typer.Typer(pretty_exceptions_enable=False, context_settings=_SETTINGS)
    app.callback(invoke_without_command=True)(_root)
    for command in commands:
        if isinstance(command, Group):
            app.add_typer(_group(command), name=command.name, help=command.help)
        else:
            app.command(name=command.__name__)(_with_global_options(command))
    return app


def paths(commands: Iterable[Function | Group]) -> list[str]:
    """What is typed for each command: ``status``, ``fuse status``."""
    found: list[str] = []
    for command in commands:
        if isinstance(command, Group):
            found += [f"{command.name} {name}" for name in command.commands]
        else:
            found.append(command.__name__)
    return found


def _group(group: Group) -> typer.Typer:
    app = typer.Typer(context_settings=_SETTINGS)
    app.callback(invoke_without_command=True)(_help)
    for name, function in group.commands.items():
        app.command(name=name)(_with_global_options(function))
    return app


def _help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _root(
    ctx: typer.Context,
    warehouse: Annotated[
        str,
        typer.Option(
            "--warehouse", "-w", metavar="PATH", envvar="TRICKLE_WAREHOUSE", help="Folder or URI of the warehouse."
        ),
    ] = DEFAULT_WAREHOUSE,
    catalog: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="TRICKLE_CATALOG", help="Database of the catalog, if not in the warehouse."),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(metavar="MASTER", envvar="TRICKLE_SPARK", help="Spark master, or sc://host:port."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Keep SQL results fresh on Apache Spark."""
    ctx.obj = Session(warehouse, catalog, spark, as_json)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _with_global_options(function: Callable[..., None]) -> Callable[..., None]:
    """The function as Typer calls it: the context and all options in, the session out."""

    def run(ctx: typer.Context, **given: Any) -> None:
        before: Session = ctx.obj
        after = {name: given.pop(name) for name in _GLOBAL}
        function(before.overridden(**after), **given)

    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _GLOBAL.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *shared]
    run.__doc__ = function.__doc__
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run
