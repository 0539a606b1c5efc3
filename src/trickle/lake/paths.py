"""One data file has three spellings: the log's (URL-quoted), Spark's when it opens it, Spark's when it reports it.

The log quotes; a reader unquotes exactly once. ``_metadata.file_path`` quotes again, by Java's rules, and with
another number of slashes after the scheme, so full paths are compared only after both were brought to the plain form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column
from pyspark.sql import functions as F

from trickle.lake.datafile import DataFile
from trickle.lake.location import Location

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_AUTHORITY = r"^[A-Za-z][A-Za-z0-9+.\-]*:/+"
_GLOB = re.compile(r"([\\\[\]{}*?])")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def is_absolute(path: str) -> bool:
    """Whether the log's spelling names a place of its own rather than one below the table.

    >>> is_absolute("p=c:d/part-0.parquet"), is_absolute("file:///x/part-0.parquet")
    (False, True)
    """
    return _ABSOLUTE.match(path) is not None


def plain_path(location: Location, path: str) -> str:
    """The full path of a file that the log spells ``path``, unquoted.

    >>> plain_path(Location.of("/wh/t"), "p=a%2520b/part-0.parquet")
    '/wh/t/p=a%20b/part-0.parquet'
    >>> plain_path(Location.of("/wh/t"), "file:///else/part%200.parquet")
    '/else/part 0.parquet'
    """
    if not is_absolute(path):
        return f"{location.for_spark.rstrip('/')}/{unquote(path)}"
    place = Location.of(path)
    return unquote(place.uri) if path.startswith("/") else place.for_spark


def for_spark(location: Location, path: str) -> str:
    """The path to give to ``spark.read``: in full, with glob characters escaped."""
    return _GLOB.sub(r"\\\1", plain_path(location, path))


def exists(location: Location, path: str) -> bool:
    """Whether the file that the log spells ``path`` is there."""
    if not is_absolute(path):
        return location.exists(unquote(path))
    folder, _, name = path.rpartition("/")
    place = unquote(folder) if path.startswith("/") else folder
    return Location.of(place, dict(location.options)).exists(unquote(name))


def is_hidden(path: str) -> bool:
    """Whether Spark would skip the file without a word because of its name."""
    name = unquote(urlsplit(path).path if "://" in path else path).rpartition("/")[2]
    return name.startswith(("_", ".")) or name.endswith("._COPYING_")


@dataclass(frozen=True)
class FileKey:
    """How rows of a scan are matched with the entries of the log they came from."""

    of_row: Callable[[Column], Column]
    """The key, from the ``_metadata`` column."""
    of_path: Callable[[str], str]
    """The key, from the log's spelling."""


def file_key(location: Location, files: Sequence[DataFile]) -> FileKey:
    """The cheapest key that tells the files apart: the bare name where names are plain and unique."""
    names = [file.path.rpartition("/")[2] for file in files]
    if len(set(names)) == len(names) and all(map(_PLAIN_NAME.match, names)):
        return FileKey(lambda metadata: metadata["file_name"], lambda path: path.rpartition("/")[2])
    return FileKey(
        lambda metadata: _unquoted(metadata["file_path"]),
        lambda path: re.sub(_AUTHORITY, "/", plain_path(location, path)),
    )


def _unquoted(file_path: Column) -> Column:
    # url_decode is made for forms, where a plus stands for a space.
    return F.url_decode(F.replace(F.regexp_replace(file_path, _AUTHORITY, "/"), F.lit("+"), F.lit("%2B")))
