"""One commit of one Delta table: files in, files out, a note of what happened, and an application transaction.

A commit states the version that it was computed from and lands on the next one or not at all; nobody but the caller
tries again. The commit's own id in the log tells a lost answer from a lost race.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructType

from trickle.errors import ConcurrentModification, CorruptTable, HistoryLost, InternalError, UnsupportedTable
from trickle.lake.actions import parse_lines
from trickle.lake.datafile import DataFile
from trickle.lake.footers import parse_stats, stats_json
from trickle.lake.location import Location
from trickle.lake.log import commit_path
from trickle.lake.snapshot import latest_version
from trickle.lake.stage import stage_of
from trickle.lake.types import delta_schema, has_timestamp_ntz

INFO_KEY = "trickle"
HOOKS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)

# Features that ask nothing of a writer which adds and removes whole files; the last ones only when they lie idle.
_WRITABLE_FEATURES = frozenset(
    {"appendOnly", "changeDataFeed", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
    | {"invariants", "checkConstraints", "generatedColumns", "identityColumns", "columnMapping"}
)
_FIELD_RULES = ("delta.invariants", "delta.generationExpression", "delta.identity.start", "delta.identity.step")


@dataclass(frozen=True)
class TableCommit:
    """What is to be committed. Equal after a round trip through JSON, so that it can be kept as an intent."""

    location: Location
    read_version: int
    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    schema: StructType | None = None
    """A new schema: the commit must then remove every file of the version it was computed from."""
    app: tuple[str, int] | None = None
    data_change: bool = True
    commit_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def version(self) -> int:
        """The version that this commit makes."""
        return self.read_version + 1

    @property
    def stage_ids(self) -> frozenset[str]:
        """The stages that hold this commit's files and change rows."""
        paths = [*(file.path for file in self.adds), *(change["path"] for change in self.info.get("changes", ()))]
        return frozenset(found for path in paths if (found := stage_of(path)) is not None)

    def to_json(self) -> str:
        """The commit as text. Storage options stay out: they may hold secrets."""
        return json.dumps(
            {
                "uri": self.location.uri,
                "read_version": self.read_version,
                "adds": [_file_to_json(file) for file in self.adds],
                "removes": [_file_to_json(file) for file in self.removes],
                "info": dict(self.info),
                "schema": self.schema.jsonValue() if self.schema is not None else None,
                "app": list(self.app) if self.app is not None else None,
                "data_change": self.data_change,
                "commit_id": self.commit_id,
            }
        )

    @staticmethod
    def from_json(text: str, options: Mapping[str, str] | None = None) -> TableCommit:
        """The inverse of ``to_json``; the storage options come from the warehouse that is open."""
        found = json.loads(text)
        return TableCommit(
            location=Location.of(found["uri"], options),
            read_version=found["read_version"],
            adds=tuple(_file_from_json(file) for file in found["adds"]),
            removes=tuple(_file_from_json(file) for file in found["removes"]),
            info=found["info"],
            schema=StructType.fromJson(found["schema"]) if found["schema"] is not None else None,
            app=(found["app"][0], found["app"][1]) if found["app"] is not None else None,
            data_change=found["data_change"],
            commit_id=found["commit_id"],
        )


def _file_to_json(file: DataFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "size": file.size,
        "partition": dict(file.partition),
        "stats": stats_json(file),
        "deletion_vector": file.deletion_vector,
        "deleted": file.deleted,
    }


def _file_from_json(found: Mapping[str, Any]) -> DataFile:
    rows, minimum, maximum, nulls = parse_stats(found["stats"])
    return DataFile(
        path=found["path"],
        size=found["size"],
        partition=found["partition"],
        rows=rows,
        minimum=minimum,
        maximum=maximum,
        nulls=nulls,
        deletion_vector=found["deletion_vector"],
        deleted=found["deleted"],
    )


def commit(change: TableCommit, checked: DeltaTable | None = None) -> int:
    """Commit and return the new version. ConcurrentModification when another commit came first.

    ``checked`` is what ``check_commit`` gave for this change.
    """
    if change.location.exists(commit_path(change.version)):
        return _settled(change)
    table = check_commit(change) if checked is None else checked
    schema = change.schema
    try:
        table.create_write_transaction(
            _actions(change),
            mode="append" if schema is None else "overwrite",
            schema=table.schema() if schema is None else delta_schema(schema),
            partition_by=table.metadata().partition_columns,
            commit_properties=commit_properties(
                {**change.info, "commit": change.commit_id}, [Transaction(*change.app)] if change.app else None
            ),
            post_commithook_properties=HOOKS,
        )
    except DeltaError as error:
        return _settled(change, error)
    return change.version


def check_commit(change: TableCommit) -> DeltaTable:
    """Refuse what could not be committed, whoever comes first; the table at the version it was computed from."""
    table = open_table(change.location, change.read_version)
    check_writable(change.location, table)
    _check_files(change, table)
    if change.schema is not None:
        _check_new_schema(change, change.schema, table)
    return table


def commit_once(change: TableCommit, checked: DeltaTable | None = None) -> int:
    """Commit unless that has happened before: for recovery. Returns the version that holds the change.

    What was ``checked`` a moment ago is at most the very next version by now, which ``commit`` sees.
    """
    if checked is not None:
        return commit(change, checked)
    found = is_committed(change)
    return commit(change) if found is None else found


def is_committed(change: TableCommit) -> int | None:
    """The version that holds this change; None when there is none."""
    if is_own(change):
        return change.version
    if change.app is None:
        return None
    app, number = change.app
    # A handle remembers the version it was opened at: only a fresh one knows.
    reached = open_table(change.location).transaction_version(app)
    if reached is None or reached < number:
        return None
    newest = latest_version(change.location, change.read_version)
    return next((v for v in range(change.version, newest + 1) if _applies(change.location, v, app, number)), newest)


def open_table(location: Location, version: int | None = None) -> DeltaTable:
    """A handle of delta-rs on a version, the newest by default. HistoryLost when the version is gone."""
    try:
        return DeltaTable(location.uri, version=version, storage_options=location.storage_options)
    except DeltaError as error:
        raise HistoryLost(
            f"version {version} of the table cannot be opened", detail=f"{location.uri}: {error}"
        ) from None


def commit_properties(info: Mapping[str, Any], transactions: Sequence[Transaction] | None = None) -> CommitProperties:
    """The note under ``trickle`` in the commit, and never a retry: delta-rs would lose conflicts."""
    return CommitProperties(
        custom_metadata={INFO_KEY: dict(info)},
        max_commit_retries=0,
        app_transactions=list(transactions) if transactions else None,
    )


def check_writable(location: Location, table: DeltaTable) -> None:
    """Refuse, by name, a table with rules that a writer would have to keep and Trickle does not."""
    features = set(table.protocol().writer_features or ())
    unknown = sorted(features - _WRITABLE_FEATURES)
    if unknown:
        raise _read_only(location, ", ".join(f"Delta feature {feature}" for feature in unknown))
    constraints = sorted(key for key in table.metadata().configuration if key.startswith("delta.constraints."))
    if constraints:
        raise _read_only(location, "check constraint " + constraints[0].removeprefix("delta.constraints."))
    for column in table.schema().fields:
        rule = next((rule for rule in _FIELD_RULES if rule in column.metadata), None)
        if rule is not None:
            raise _read_only(location, f"{rule} on column {column.name}")


def _read_only(location: Location, what: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"table has {what}, which Trickle does not keep when it writes",
        detail=f"table at {location.uri}",
        hint="write to it with the engine that made it; Trickle reads it",
    )


def _check_files(change: TableCommit, table: DeltaTable) -> None:
    missing = [f.path for f in change.adds if not change.location.exists(unquote(f.path))]
    if missing:
        raise CorruptTable(
            "a file to add is not there", detail=f"{missing[0]} and {len(missing) - 1} more in {change.location.uri}"
        )
    if not change.removes:
        return
    refuse_vectors(change.location, change.removes)
    if change.data_change and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        raise UnsupportedTable(
            "rows can only be added to this table",
            detail=f"{change.location.uri} has the property delta.appendOnly",
            hint="set delta.appendOnly to false",
        )
    known = _paths(table)
    unknown = [f.path for f in change.removes if f.path not in known]
    if unknown:
        raise CorruptTable(
            f"a file to remove is not in version {change.read_version}",
            detail=f"{unknown[0]} and {len(unknown) - 1} more in {change.location.uri}",
        )
    both = {f.path for f in change.adds} & {f.path for f in change.removes}
    if both:
        raise InternalError("a commit adds and removes the same file", detail=min(both))


def refuse_vectors(location: Location, files: Iterable[DataFile]) -> None:
    """Refuse to remove files with deletion vectors: delta-rs would name them without, and so remove nothing."""
    for file in files:
        if file.deletion_vector is not None:
            raise UnsupportedTable(
                "rows of this table are hidden by deletion vectors, which Trickle reads but does not write",
                detail=f"{file.path} in {location.uri}",
                hint="purge the deletion vectors with the engine that wrote them",
            )


def _paths(table: DeltaTable) -> set[str]:
    return set(pa.table(table.get_add_actions()).column("path").to_pylist())


def _check_new_schema(change: TableCommit, schema: StructType, table: DeltaTable) -> None:
    left = _paths(table) - {f.path for f in change.removes}
    if left:
        raise InternalError(
            "a new schema must replace every file", detail=f"{min(left)} would stay in {change.location.uri}"
        )
    # In both cases below delta-rs would commit and leave a table that nobody can open.
    lost = [name for name in table.metadata().partition_columns if name not in schema.names]
    if lost:
        raise UnsupportedTable(
            f"partition column {lost[0]!r} cannot leave the table", detail=f"table at {change.location.uri}"
        )
    if has_timestamp_ntz(schema) and "timestampNtz" not in (table.protocol().writer_features or ()):
        raise UnsupportedTable(
            "the table was made without the Delta feature timestampNtz", detail=f"table at {change.location.uri}"
        )


def _actions(change: TableCommit) -> list[AddAction | RemoveAction]:
    now = time.time_ns() // 1_000_000
    adds: Iterable[AddAction | RemoveAction] = (
        # delta-rs quotes the path on its own.
        AddAction(unquote(f.path), f.size, dict(f.partition), now, change.data_change, stats_json(f))
        for f in change.adds
    )
    if change.schema is not None:
        return list(adds)
    removes = (
        RemoveAction(unquote(f.path), change.data_change, now, size=f.size, partition_values=dict(f.partition))
        for f in change.removes
    )
    return [*adds, *removes]


def _settled(change: TableCommit, error: DeltaError | None = None) -> int:
    """The version when the commit is there after all; otherwise the error that says why it is not."""
    if is_own(change):
        return change.version
    if isinstance(error, CommitFailedError) or change.location.exists(commit_path(change.version)):
        raise ConcurrentModification(
            "another writer changed the table first",
            detail=f"{change.location.uri} is past version {change.read_version}",
            hint="run the statement again",
        ) from None
    raise CorruptTable("the commit failed", detail=f"{change.location.uri}: {error}") from error


def is_own(change: TableCommit) -> bool:
    """Whether the version that the commit would make is there and is this very commit."""
    notes = [action.get("commitInfo", {}).get(INFO_KEY) for action in _entries(change.location, change.version)]
    return any(isinstance(note, dict) and note.get("commit") == change.commit_id for note in notes)


def _applies(location: Location, version: int, app: str, number: int) -> bool:
    """Whether the version brought an application to this transaction number or beyond."""
    transactions = [action["txn"] for action in _entries(location, version) if "txn" in action]
    return any(found["appId"] == app and found["version"] >= number for found in transactions)


def _entries(location: Location, version: int) -> list[dict[str, Any]]:
    content = location.read(commit_path(version))
    return parse_lines(content) if content is not None else []
