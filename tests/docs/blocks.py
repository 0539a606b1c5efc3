"""Fenced blocks of a Markdown page: what is run, what is compared, and what is neither.

``python`` and ``sql`` blocks are run; an ``output`` block right after one is what it must print. A ``console`` block
has commands after ``$`` and what they print below them. ``toml`` is read as settings. ``text`` and ``mermaid`` are for
people only. There is nothing else: a block without a language, or with another one, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = ("python", "sql", "console", "toml")
FOR_PEOPLE = ("text", "mermaid")
OUTPUT = "output"

_FENCE = re.compile(r"^(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Block:
    """A block that is run, with what it should print (None when the page does not say)."""

    page: Path
    line: int
    language: str
    text: str
    expected: str | None = None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class _Fenced:
    line: int
    info: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that are run, in order."""
    found: list[Block] = []
    expecting = False
    for fenced in _fenced(page):
        where = f"{page}:{fenced.line}"
        match fenced.info:
            case "output":
                assert expecting, f"{where}: an output block comes right after the block that prints it"
                last = found.pop()
                found.append(Block(last.page, last.line, last.language, last.text, fenced.text))
                expecting = False
            case language if language in RUN:
                found.append(Block(page, fenced.line, language, fenced.text))
                expecting = language in ("python", "sql")
            case language if language in FOR_PEOPLE:
                expecting = False
            case other:
                raise AssertionError(
                    f"{where}: a block says {other!r}; it must be one of {(*RUN, *FOR_PEOPLE, OUTPUT)}"
                )
    return found


def _fenced(page: Path) -> Iterator[_Fenced]:
    mark, info, start = "", "", 0
    inside: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line.strip())
        if not mark and fence:
            mark, info, start, inside = fence["mark"], fence["info"].strip(), number, []
        elif mark and line.strip() == mark:
            yield _Fenced(start, info, "\n".join(inside) + "\n")
            mark = ""
        elif mark:
            inside.append(line)
    assert not mark, f"{page}:{start}: the block is not closed"
