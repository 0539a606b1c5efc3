"""Where a table lies: a local folder or a URI, never glued together as text.

Local paths are kept absolute and without a scheme, as delta-rs reports them; everything else keeps its URI.
"""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

_SPARK_SCHEMES = {"s3": "s3a"}


@dataclass(frozen=True)
class StoredFile:
    """A file found in a folder, with its path relative to the location that listed it."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Location:
    """A folder on a file system or an object store."""

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def of(place: str | Path, options: Mapping[str, str] | None = None) -> Location:
        """A location from a path or URI. ``file:`` URIs become plain paths.

        >>> Location.of("s3://bucket/wh/").uri
        's3://bucket/wh'
        >>> Location.of("file:///tmp/a%20b").uri
        '/tmp/a b'
        """
        text = str(place)
        pairs = tuple(sorted((options or {}).items()))
        parts = urlsplit(text)
        if parts.scheme == "file":
            return Location(str(Path(unquote(parts.path)).absolute()), pairs)
        if "://" in text:
            clean = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))
            return Location(clean, pairs)
        return Location(str(Path(text).expanduser().absolute()), pairs)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    @property
    def storage_options(self) -> dict[str, str] | None:
        return dict(self.options) or None

    def child(self, *names: str) -> Location:
        """The folder below this one.

        >>> Location.of("s3://bucket/wh").child("default", "orders").uri
        's3://bucket/wh/default/orders'
        """
        if self.is_local:
            return Location(str(Path(self.uri, *names)), self.options)
        parts = urlsplit(self.uri)
        path = posixpath.join(parts.path or "/", *names)
        return Location(urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), self.options)

    @property
    def for_spark(self) -> str:
        """The folder as Spark wants it spelled."""
        if self.is_local:
            return self.uri
        parts = urlsplit(self.uri)
        scheme = _SPARK_SCHEMES.get(parts.scheme, parts.scheme)
        # A URI is quoted; Hadoop takes the text after the authority as it stands.
        return urlunsplit((scheme, parts.netloc, "", "", "")) + unquote(parts.path)

    @cached_property
    def _files(self) -> pafs.PyFileSystem:
        return pafs.PyFileSystem(DeltaStorageHandler(self.uri, self.storage_options))

    def read(self, path: str) -> bytes | None:
        """The bytes of a file below this folder; None when it is not there."""
        if self.is_local:
            try:
                return Path(self.uri, path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
        if not self.exists(path):
            return None
        with self._files.open_input_file(path) as stream:
            content: bytes = stream.read()
            return content

    def exists(self, path: str) -> bool:
        if self.is_local:
            return Path(self.uri, path).exists()
        found: bool = self._files.get_file_info(path).type != pafs.FileType.NotFound
        return found

    def find(self, path: str) -> StoredFile | None:
        """A file below this folder with its size and time; None when it is not there."""
        if self.is_local:
            try:
                stat = Path(self.uri, path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return StoredFile(path, stat.st_size, stat.st_mtime_ns // 1_000_000)
        info = self._files.get_file_info(path)
        if info.type != pafs.FileType.File:
            return None
        return StoredFile(path, info.size, (info.mtime_ns or 0) // 1_000_000)

    def filesystem(self) -> tuple[pafs.FileSystem, str]:
        """The file system that holds this folder, and the folder's path in it ("" on object stores)."""
        if self.is_local:
            return pafs.LocalFileSystem(), self.uri
        return self._files, ""

    def walk(self, path: str = "") -> Iterator[StoredFile]:
        """Every file below ``path``, with its path relative to this location."""
        if self.is_local:
            root = Path(self.uri)
            for entry in sorted(Path(root, path).rglob("*")):
                with suppress(FileNotFoundError):
                    if entry.is_file():
                        stat = entry.stat()
                        yield StoredFile(
                            entry.relative_to(root).as_posix(), stat.st_size, stat.st_mtime_ns // 1_000_000
                        )
            return
        selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
        for info in self._files.get_file_info(selector):
            if info.type == pafs.FileType.File:
                yield StoredFile(info.path, info.size, (info.mtime_ns or 0) // 1_000_000)

    def delete(self, path: str) -> None:
        """Remove a file or folder below this one; nothing happens when it is not there."""
        if self.is_local:
            target = Path(self.uri, path)
            if target.is_dir():
                shutil.rmtree(target, ignore_errors=True)
            else:
                target.unlink(missing_ok=True)
            return
        for file in list(self.walk(path)):
            self._files.delete_file(file.path)
