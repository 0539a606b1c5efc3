"""Sources without history as replicas: read whole from time to time, and changed by the rows that differ.

A reading that is the same as the one before commits nothing. One whose columns no longer fit is noticed before a row is
written: by ``on_source_ddl`` the replica keeps its contents until somebody decides, or takes over the new columns.
Files and functions are replicas of their own; tables of a PostgreSQL database are polled together, in one snapshot
(``replicas/ingest.py``).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.algebra.names import TableName, check_columns, quote
from trickle.apply.unit import PinnedMember, application_id, commit_unit, recover
from trickle.catalog import alerts, pins, polled, relations
from trickle.catalog.outside import Polled, PolledKind, ReplicaStatus
from trickle.catalog.records import Event, Kind, Relation
from trickle.errors import ConcurrentModification, InvalidOption, SchemaDrift, TrickleError
from trickle.lake.create import create
from trickle.lake.create import drop as drop_table
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import overwrite
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import open_snapshot
from trickle.replicas.giving_up import give_up
from trickle.replicas.loading import Fence
from trickle.replicas.shape import lake_names
from trickle.settings import Settings, parse_duration
from trickle.sources import polling as reading
from trickle.sql.names import table_name
from trickle.tables.ddl import remove, taken
from trickle.warehouse import Warehouse

_SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True)
class PollResult:
    """What a reading changed."""

    name: str
    rows_inserted: int
    rows_deleted: int
    problem: str | None = None


def check_interval(schedule: str | None, settings: Settings) -> str:
    """How often a source is read: as given, or by the setting."""
    text = (schedule or settings.poll_interval).strip().lower()
    found = parse_duration(text)
    if found is None or found < _SHORTEST:
        raise InvalidOption(
            f"a source is polled after a duration of at least one second, not {schedule!r}",
            hint="such as '30s' or '5m'",
        )
    return text


def options_of(given: Mapping[str, str] | str | None) -> dict[str, str]:
    """Options of a reader, also from one text, as SQL has them.

    >>> options_of("header=false, sep=;")
    {'header': 'false', 'sep': ';'}
    """
    if given is None or not isinstance(given, str):
        return {name: str(value) for name, value in (given or {}).items()}
    pairs = [part.strip().partition("=") for part in given.split(",") if part.strip()]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise InvalidOption(f"not an option of a reader: {wrong[0]!r}", hint="write name=value, name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}


def is_due(schedule: str, last: datetime | None, now: datetime) -> bool:
    """Whether a source is to be read again."""
    return last is None or now >= last + (parse_duration(schedule) or _SHORTEST)


def attach_files(
    warehouse: Warehouse,
    name: TableName,
    path: str,
    form: str,
    *,
    options: Mapping[str, str],
    schedule: str | None,
) -> Relation:
    """Make files that Spark reads a source: read now, and again on a schedule."""
    # Spark would take a relative path from where its own process was started.
    place = path if _has_scheme(path) else str(Path(path).expanduser().absolute())
    definition = {"path": place, "format": form.strip().lower(), "options": dict(options)}
    return _attach(warehouse, name, PolledKind.FILES, lambda: definition, schedule)


def _has_scheme(path: str) -> bool:
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:/", path) is not None


def attach_function(
    warehouse: Warehouse, name: TableName, function: reading.PollFunction | str, *, schedule: str | None
) -> Relation:
    """Make a function that gives a DataFrame a source: called now, and again on a schedule."""

    def definition() -> dict[str, Any]:
        return {"function": reading.register(warehouse.catalog.url_shown, str(name), function)}

    return _attach(warehouse, name, PolledKind.FUNCTION, definition, schedule)


def _attach(
    warehouse: Warehouse,
    name: TableName,
    kind: PolledKind,
    define: Callable[[], Mapping[str, Any]],
    schedule: str | None,
) -> Relation:
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
        existing = relations.find(tx, name)
    if existing is not None:
        raise taken(existing)
    if name.is_system:
        raise InvalidOption(f"{name} is in the system schema", hint="choose another schema")
    interval = check_interval(schedule, settings)
    definition = define()
    frame = _frame(warehouse, name, kind, definition, None)
    check_columns(frame.columns)
    location = warehouse.place_for(name)
    create(location, relaxed(frame.schema), comment=f"replica of {_shown(definition)}")
    try:
        with warehouse.catalog.write() as tx:
            now = warehouse.clock.now()
            relation = relations.add(
                tx,
                name=name,
                kind=Kind.REPLICA,
                uid=uuid.uuid4().hex,
                location=warehouse.relative(location),
                now=now,
            )
            pins.add(tx, relation.id, now)
            polled.add(tx, relation.id, kind=kind, definition=definition, schedule=interval)
    except BaseException:
        drop_table(location)
        raise
    try:
        poll(warehouse, relation.id)
    except BaseException:
        remove(warehouse, relation, cascade=False, statement="detach")
        raise
    return relation


def _shown(definition: Mapping[str, Any]) -> str:
    return str(definition.get("path") or definition.get("function"))


def detach(warehouse: Warehouse, name: str, *, cascade: bool) -> list[Relation] | None:
    """Let go of a polled source; None when the name is none of one."""
    found = named(warehouse, name)
    if found is None:
        return None
    recover(warehouse, [found.relation.id])
    return remove(warehouse, found.relation, cascade=cascade, statement="detach")


def named(warehouse: Warehouse, name: str) -> Polled | None:
    """The polled source of this name, if there is one. The name may be that of a database, which is any text."""
    try:
        wanted = table_name(name)
    except TrickleError:
        return None
    with warehouse.catalog.read() as tx:
        return next((one for one in polled.listing(tx) if one.relation.name == wanted), None)


def poll_all(warehouse: Warehouse, relation_ids: Collection[int] | None = None) -> list[PollResult]:
    """Read polled sources, all or some; those that changed."""
    with warehouse.catalog.read() as tx:
        found = [one.relation.id for one in polled.listing(tx)]
    wanted = found if relation_ids is None else [one for one in found if one in relation_ids]
    return [result for one in wanted if (result := poll(warehouse, one)) is not None]


def poll(warehouse: Warehouse, relation_id: int, *, fence: Fence | None = None) -> PollResult | None:
    """Read a source and take over what differs; None when nothing does."""
    recover(warehouse, [relation_id])
    with warehouse.catalog.read() as tx:
        found = polled.find(tx, relation_id)
        settings = warehouse.settings(tx)
    if found is None:
        raise ConcurrentModification("the source was let go of by another session", hint="run it again")
    try:
        result = _Poll(warehouse, found, settings, fence).run()
    except TrickleError as error:
        _note_failure(warehouse, found, error)
        raise
    with warehouse.catalog.write() as tx:
        polled.update(tx, relation_id, polled_at=warehouse.clock.now(), last_error=None, last_error_at=None)
    return result


def _note_failure(warehouse: Warehouse, found: Polled, error: TrickleError) -> None:
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        polled.update(tx, found.relation.id, last_error=str(error), last_error_at=now)
        if found.last_error is None:
            payload = {"source": str(found.relation.name), "error": error.message, "code": error.code}
            alerts.add(tx, event=Event.STALE_DATA.value, relation_id=found.relation.id, payload=payload, now=now)


def _frame(
    warehouse: Warehouse, name: TableName, kind: PolledKind, definition: Mapping[str, Any], known: StructType | None
) -> DataFrame:
    """The source as it is now, with names that the lake can hold."""
    if kind is PolledKind.FILES:
        found = reading.read_files(
            warehouse.engine, definition["path"], definition["format"], definition["options"], known, lake_names
        )
    else:
        found = reading.read_function(
            warehouse.engine, warehouse.catalog.url_shown, str(name), str(definition["function"])
        )
    names = lake_names(found.columns)
    return found if names == found.columns else found.toDF(*names)


@dataclass(frozen=True)
class _Poll:
    """One reading of one source."""

    warehouse: Warehouse
    found: Polled
    settings: Settings
    fence: Fence | None

    def run(self) -> PollResult | None:
        relation, pin = self.found.relation, self.found.pin
        snapshot = open_snapshot(self.warehouse.location_of(relation))
        frame = _frame(self.warehouse, relation.name, self.found.kind, self.found.definition, snapshot.schema)
        schema = None
        lost = lost_columns(snapshot.schema, frame.schema)
        if lost:
            schema = self._drifted(snapshot.schema, frame.schema, lost[0])
        columns = [quote(column) for column in (schema or snapshot.schema).names]
        made = overwrite(
            self.warehouse.engine, snapshot, frame.select(*columns), difference=schema is None, schema=schema
        )
        if made.is_empty and pin.version == snapshot.version:
            self._mark(ReplicaStatus.ACTIVE, None)
            return None
        self._commit(made)
        self._mark(ReplicaStatus.ACTIVE, None)
        if made.is_empty:
            return None
        return PollResult(str(relation.name), made.inserted, made.deleted)

    def _commit(self, made: Prepared) -> None:
        relation, number = self.found.relation, self.found.pin.number + 1
        position = f"polling:{self.warehouse.clock.now().isoformat()}"
        if made.is_empty:
            member = PinnedMember(relation.id, number, None, made.read_version, position)
        else:
            commit = made.as_commit(app=(application_id(relation.uid), number))
            member = PinnedMember(relation.id, number, commit, commit.version, position)
        try:
            commit_unit(self.warehouse, [member], fence=self.fence)
        except BaseException:
            give_up(self.warehouse, [self.found], {relation.id: made})
            raise

    def _drifted(self, known: StructType, now: StructType, column: str) -> StructType:
        """The columns to take over; refuses where somebody has to decide."""
        types = {field.name.lower(): field.dataType.simpleString() for field in now.fields}
        before = known[column].dataType.simpleString()
        words = f"column {column!r} was {before} and is {types.get(column.lower(), 'missing')}"
        if self.settings.on_source_ddl == "reinitialize":
            return relaxed(now)
        self._mark(ReplicaStatus.BROKEN, words)
        raise SchemaDrift(
            f"the source of {self.found.relation.name} no longer has the columns that it was attached with",
            detail=words,
            hint="change it back, or SET trickle.on_source_ddl = 'reinitialize', or detach it and attach it again",
        )

    def _mark(self, status: ReplicaStatus, problem: str | None) -> None:
        if (self.found.status, self.found.problem) != (status, problem):
            with self.warehouse.catalog.write() as tx:
                polled.update(tx, self.found.relation.id, status=status, problem=problem)
