"""``validate_query``: whether a query could be kept by changes, and how each of its constructs would be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from trickle.catalog.records import RefreshMode
from trickle.delta.groups import Groups
from trickle.errors import ParseError, TrickleError, UnsupportedError
from trickle.refresh.compiled import Compiled
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.explain.constructs import CHANGES, Found, aggregate_key, constructs, offset_of
from trickle.refresh.explain.opened import UNSTEADY, Asked, read_query
from trickle.refresh.explain.words import upkeep
from trickle.sql.canonical.parsing import root_of
from trickle.sql.positions import locate
from trickle.warehouse import Warehouse

_SHORTEST_NAME = 3


@dataclass(frozen=True)
class Finding:
    """A construct of a query: whether it is kept by changes, how, and where it stands.

    The first one is the verdict on the whole: DIFFERENTIAL or FULL.
    """

    construct: str
    kept: str
    how: str
    place: str | None


def validate_query(warehouse: Warehouse, text: str) -> list[Finding]:
    """How a query would be kept. What no stream table could have is refused, as its creation would be."""
    asked = read_query(warehouse, text)
    compiled: Compiled | None = None
    try:
        if asked.is_unsteady:
            verdict = Finding("query", RefreshMode.FULL.value, f"{UNSTEADY} (UNSTEADY)", None)
        else:
            compiled = asked.compiled()
            verdict = Finding("query", RefreshMode.DIFFERENTIAL.value, _stored_in(compiled), None)
    except UnsupportedError as error:
        place = _place_of(error, asked.given.text)
        why = f"{error.message} (UNSUPPORTED)" + (f"; {error.detail}" if error.detail else "")
        verdict = Finding("query", RefreshMode.FULL.value, why, place)
    notices = [Finding("notice", CHANGES, notice, None) for notice in asked.notices]
    return [verdict, *notices, *_findings(asked, compiled)]


def _stored_in(compiled: Compiled) -> str:
    inner = len(compiled.inner)
    tables = f" and {inner} inner table{'' if inner == 1 else 's'}" if inner else ""
    whole = f"; reads its input whole: {', '.join(compiled.unrestricted)}" if compiled.unrestricted else ""
    return f"kept by changes in its own table{tables}{whole}"


def _findings(asked: Asked, compiled: Compiled | None) -> Iterator[Finding]:
    ways = {} if compiled is None else _ways(compiled)
    texts = {
        "": asked.given.text,
        **{f"view {name}, ": view.text for name, view in sorted(asked.reading.views.items())},
    }
    for where, text in texts.items():
        for found in constructs(root_of(text, DEEPEST)):
            place = None if found.offset is None else where + _spelled(text, found.offset)
            yield Finding(found.name, found.kept, _how(found, ways, compiled), place)


def _how(found: Found, ways: Mapping[tuple[str, bool], str], compiled: Compiled | None) -> str:
    if found.aggregate is None:
        return found.how
    if compiled is None:
        return "by groups; how is known when the query as a whole is kept by changes"
    return ways.get(found.aggregate, "written in other terms before it is kept")


def _ways(compiled: Compiled) -> Mapping[tuple[str, bool], str]:
    """How the aggregates of the stages are kept, by function; several ways when arguments differ in type."""
    found: dict[tuple[str, bool], list[str]] = {}
    for stage in compiled.stages:
        if isinstance(stage.keeping, Groups):
            for call in stage.keeping.aggregate.calls:
                way = upkeep(stage.keeping.kept[call.name])
                found.setdefault(aggregate_key(call.value), []).append(f"{way.kind}: {way.words}")
    return {key: " / ".join(dict.fromkeys(ways)) for key, ways in found.items()}


def _place_of(error: TrickleError, text: str) -> str | None:
    """Where the construct stands that an error is about; None when the error does not name it."""
    if isinstance(error, ParseError) and error.line is not None:
        return f"line {error.line}, column {error.column}"
    root = root_of(text, DEEPEST)
    offsets = [
        *(offset_of(node) for node in root.walk() if _is_quoted(node, error)),
        *(found.offset for found in constructs(root) if _names(error, found.name)),
        *(offset_of(node) for node in root.find_all(exp.Anonymous) if _names(error, node.name)),
    ]
    offset = next((offset for offset in offsets if offset is not None), None)
    return None if offset is None else _spelled(text, offset)


def _is_quoted(node: exp.Expr, error: TrickleError) -> bool:
    """Whether the error's detail is the node."""
    quoted = (error.detail or "").removeprefix("found ")
    return bool(quoted) and not isinstance(node, exp.Identifier) and node.sql("spark").startswith(quoted)


def _names(error: TrickleError, name: str) -> bool:
    """Whether the error's message has the name of a construct or a function."""
    word = name.removesuffix("()")
    found = re.search(rf"\b{re.escape(word)}\b", error.message, re.IGNORECASE)
    return len(word) >= _SHORTEST_NAME and found is not None


def _spelled(text: str, offset: int) -> str:
    line, column = locate(text, offset)
    return f"line {line}, column {column}"
