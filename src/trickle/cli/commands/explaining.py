"""The command explain: what Trickle would do and why, without doing it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from trickle.cli.arguments import SqlFile, read_text
from trickle.cli.names import stream_table
from trickle.cli.output import print_json, print_line, show_rows
from trickle.cli.session import Session
from trickle.cli.values import to_json
from trickle.cli.working import working
from trickle.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trickle.api import Trickle
    from trickle.refresh.explain import AuxiliaryColumn, Fact, Finding, Forecast


class Topic(StrEnum):
    """What is explained."""

    ST = "st"
    MODE = "mode"
    DELTA = "delta"
    COLUMNS = "columns"
    QUERY = "query"
    REWRITE = "rewrite"


TopicArgument = Annotated[
    Topic,
    typer.Argument(
        metavar="TOPIC",
        help="Of a stream table: st (how it is kept), mode (what its next refresh would do), delta (the plan of its "
        "change), columns (hidden ones). Of a query: query (could it be kept by changes), rewrite (what becomes of "
        "it).",
    ),
]
Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME|QUERY", help="Stream table, or SELECT ('-' reads stdin).", autocompletion=stream_table
    ),
]
Form = Annotated[str, typer.Option("--format", metavar="FORMAT", help="Of delta: tree, sql or spark.")]


def explain(
    session: Session,
    topic: TopicArgument,
    subject: Subject = None,
    *,
    file: SqlFile = None,
    form: Form = "tree",
) -> None:
    """Tell how a stream table or a query is kept, without refreshing anything."""
    text = read_text(subject, file)
    if text is None:
        wanted = '"SELECT ..."' if topic in (Topic.QUERY, Topic.REWRITE) else "NAME"
        raise InvalidOption(f"explain {topic} of what?", hint=f"trickle explain {topic} {wanted}")
    with session.connect() as t, working(t.warehouse.engine, f"explaining {topic}"):
        found = _explained(t, topic, text, form)
    if session.as_json:
        print_json(to_json(found))
    elif isinstance(found, list):
        _show_list(session, found)
    else:
        _show_forecast(session, found)


def _explained(
    t: Trickle, topic: Topic, text: str, form: str
) -> list[Fact] | list[AuxiliaryColumn] | list[Finding] | list[str] | Forecast:
    match topic:
        case Topic.ST:
            return t.explain_st(text)
        case Topic.MODE:
            return t.explain_refresh_mode(text)
        case Topic.DELTA:
            return t.explain_delta(text, form)
        case Topic.COLUMNS:
            return t.list_auxiliary_columns(text)
        case Topic.QUERY:
            return t.validate_query(text)
        case Topic.REWRITE:
            return t.explain_query_rewrite(text)
        case _:
            assert_never(topic)


def _show_list(session: Session, found: Sequence[object]) -> None:
    if found and isinstance(found[0], str):
        print_line("\n".join(map(str, found)))
    else:
        show_rows(session, found, vars, empty="nothing but the columns of the query is stored")


def _show_forecast(session: Session, found: Forecast) -> None:
    code = f" ({found.code})" if found.code else ""
    print_line(f"{found.name}: {found.action}{code}: {found.reason}")
    show_rows(session, found.sources, vars, empty="it reads no table")
