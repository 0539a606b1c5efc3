"""The text of an array of PostgreSQL: ``{1,NULL,"with, a comma"}``."""

from __future__ import annotations

import re

_BOUNDS = re.compile(r"(?:\[-?\d+:-?\d+\])+=")


def read_array(text: str, delimiter: str = ",") -> list[str | None]:
    r"""The elements of an array of one dimension, NULL as None.

    >>> read_array('{1,NULL,"NULL","a,\\"b\\\\",""}')
    ['1', None, 'NULL', 'a,"b\\', '']
    >>> read_array('[0:1]={a,b}')
    ['a', 'b']
    """
    bounds = _BOUNDS.match(text)
    body = text[bounds.end() if bounds else 0 :]
    if body == "{}":
        return []
    if body[:1] != "{" or body[-1:] != "}" or body[1:2] == "{" or (bounds and bounds.group().count("[") > 1):
        raise ValueError("an array of more than one dimension")
    if '"' not in body and "\\" not in body:
        return [None if item == "NULL" else item for item in body[1:-1].split(delimiter)]
    return _quoted(body[1:-1], delimiter)


def _quoted(body: str, delimiter: str) -> list[str | None]:
    found: list[str | None] = []
    token = re.compile(rf'"((?:[^"\\]|\\.)*)"|([^{re.escape(delimiter)}]*)', re.DOTALL)
    place = 0
    while True:
        match = token.match(body, place)
        assert match is not None
        inside, bare = match.groups()
        found.append(re.sub(r"\\(.)", r"\1", inside, flags=re.DOTALL) if inside is not None else _bare(bare))
        place = match.end()
        if place >= len(body):
            return found
        if body[place] != delimiter:
            raise ValueError("not the text of an array")
        place += 1


def _bare(item: str) -> str | None:
    return None if item == "NULL" else item
