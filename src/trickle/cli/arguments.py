"""Arguments that several commands share, and texts that come from a file or from stdin."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from trickle.cli.names import any_table, stream_table
from trickle.errors import InvalidOption

STDIN = "-"

TableName = Annotated[
    str, typer.Argument(metavar="NAME", help="Table, view or stream table.", autocompletion=any_table)
]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="Table that others read.", autocompletion=any_table)]
StreamName = Annotated[str, typer.Argument(metavar="NAME", help="Stream table.", autocompletion=stream_table)]
SqlFile = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the SQL from a file, or from stdin with '-'.")
]
RowLimit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows to print at most; 0 prints all.")]
By = Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who says so; you by default.")]
DEFAULT_ROWS = 100


def read_text(text: str | None, file: Path | None) -> str | None:
    """SQL given as an argument, in a file, or on stdin; None where neither was given."""
    if text is not None and file is not None:
        raise InvalidOption("SQL is given twice", hint="give the text or --file, not both")
    if STDIN in (text, str(file)):
        return _decoded(sys.stdin.buffer.read(), "stdin")
    if file is None:
        return text
    try:
        return _decoded(file.read_bytes(), str(file))
    except OSError as error:
        raise InvalidOption(f"cannot read {file}", detail=error.strerror) from None


def _decoded(content: bytes, place: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidOption(f"{place} is not UTF-8 text", detail=f"byte {error.start}") from None


def user(given: str | None) -> str:
    """Who acts: whoever was named, or else who is logged in."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def parse_options(pairs: list[str]) -> dict[str, object]:
    """Options given as ``key=value``.

    >>> parse_options(["fuse=fixed", "fuse_ceiling=1000", "append_only=true", "description=a=b"])
    {'fuse': 'fixed', 'fuse_ceiling': 1000, 'append_only': True, 'description': 'a=b'}
    """
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InvalidOption(f"not an option: {pair!r}", hint="write --option key=value")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> object:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case "null" | "none" | "":
            return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
