"""Ingest: what was captured becomes visible in the lake, all tables of a database at one position.

The position is taken once, then every replica's net change up to it is staged, then all of them are committed as one
unit that moves pins and positions in one catalog transaction; only then is the capture told to forget. So a transaction
over several tables is seen whole or not at all, and exactly once: a process that dies before the intent leaves nothing,
one that dies after it is rolled forward, and what was not forgotten lies before the position of the next ingest.

The source is looked at after the position was taken: a column that was changed in between is seen too early, never too
late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.algebra.weights import WEIGHT
from trickle.apply.unit import PinnedMember, application_id, commit_unit, recover
from trickle.catalog import alerts, databases, polled, relations
from trickle.catalog.outside import Database, Replica, ReplicaStatus
from trickle.catalog.records import Event, Relation
from trickle.engine.arrow import for_spark
from trickle.errors import CorruptTable, HistoryLost, InternalError, NegativeMultiplicity, TrickleError
from trickle.lake.changes import count_changes
from trickle.lake.few import THREADS, Few
from trickle.lake.keyed import in_order
from trickle.lake.local import net
from trickle.lake.merge import merge_keyed_table, merge_table
from trickle.lake.prepared import Prepared, note
from trickle.lake.rewrite import overwrite
from trickle.lake.snapshot import Snapshot, latest_version, open_snapshot
from trickle.lake.stage import stage_made
from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import SourceTable, describe_oids
from trickle.replicas import shape
from trickle.replicas.captures import POLLING, TRIGGER, capture_of, mode_of
from trickle.replicas.giving_up import give_up
from trickle.replicas.kept import with_kept
from trickle.replicas.loading import Fence, Source, lake_key, load, nullable
from trickle.replicas.locks import one_at_a_time
from trickle.replicas.polling import poll_all
from trickle.replicas.switching import Switch, fall_back, reconsider, tidy, watch_slot
from trickle.settings import Settings
from trickle.sources.postgres.capture import Capture, Changes
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class IngestResult:
    """What an ingest did to one replica."""

    database: str
    name: str
    rows_inserted: int
    rows_deleted: int
    loaded: bool = False
    problem: str | None = None


def ingest(
    warehouse: Warehouse, names: Collection[str] | None = None, *, fence: Fence | None = None
) -> list[IngestResult]:
    """Bring the replicas of attached databases to the present: of all, or of those named. Those that moved are told."""
    with warehouse.catalog.read() as tx:
        found = databases.listing(tx) if names is None else [databases.get(tx, name) for name in names]
    results = [result for database in found for result in ingest_one(warehouse, database, fence=fence)]
    return results if names is not None else [*results, *ingest_polled(warehouse)]


def ingest_polled(warehouse: Warehouse, relation_ids: Collection[int] | None = None) -> list[IngestResult]:
    """Read polled files and functions, all or some; those that changed."""
    return [
        IngestResult("", one.name, one.rows_inserted, one.rows_deleted) for one in poll_all(warehouse, relation_ids)
    ]


def ingest_for(warehouse: Warehouse, names: Collection[TableName]) -> None:
    """Bring to the present what stream tables read, at any distance."""
    with warehouse.catalog.read() as tx:
        found = databases.listing(tx)
        others = {one.relation.id for one in polled.listing(tx)}
        if not found and not others:
            return
        owners = {replica.relation.id: replica.database_id for replica in databases.replicas(tx)}
        read = _upstream(tx, [relation.id for name in names if (relation := relations.find(tx, name)) is not None])
    wanted = {owners[relation] for relation in read if relation in owners}
    for database in found:
        if database.id in wanted:
            ingest_one(warehouse, database)
    ingest_polled(warehouse, read & others)


def _upstream(tx: Session, relation_ids: Collection[int]) -> set[int]:
    sources: dict[int, set[int]] = {}
    for dependency in relations.all_dependencies(tx):
        sources.setdefault(dependency.relation_id, set()).add(dependency.source_id)
    found: set[int] = set()
    pending = list(relation_ids)
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += sources.get(each, ())
    return found


def ingest_one(warehouse: Warehouse, database: Database, *, fence: Fence | None = None) -> list[IngestResult]:
    """Bring the replicas of one database to the present."""
    try:
        with connected(database.dsn) as connection, one_at_a_time(connection, database.name):
            # Whoever had the lock before may have changed its capture, or let go of it.
            found = _find(warehouse, database)
            if found is None:
                return []
            results = _Ingest(warehouse, found, connection, fence).run()
    except TrickleError as error:
        _note_failure(warehouse, database, error)
        raise
    if results or found.last_error is not None or mode_of(found) == POLLING:
        with warehouse.catalog.write() as tx:
            databases.update(tx, found.id, ingested_at=warehouse.clock.now(), last_error=None, last_error_at=None)
    return results


def _find(warehouse: Warehouse, database: Database) -> Database | None:
    with warehouse.catalog.read() as tx:
        return databases.find(tx, database.name)


def _note_failure(warehouse: Warehouse, database: Database, error: TrickleError) -> None:
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        found = databases.find(tx, database.name)
        if found is None:
            return
        databases.update(tx, found.id, last_error=str(error), last_error_at=now)
        if found.last_error is None:
            alerts.add(
                tx,
                event=Event.STALE_DATA.value,
                relation_id=None,
                severity=Event.STALE_DATA.severity,
                payload={"database": found.name, "error": error.message, "code": error.code},
                now=now,
            )


class _Ingest:
    """One ingest of one database, under its lock."""

    def __init__(self, warehouse: Warehouse, database: Database, connection: Connection, fence: Fence | None) -> None:
        self.warehouse = warehouse
        self.database = database
        self.connection = connection
        self.fence = fence
        self.results: list[IngestResult] = []
        with warehouse.catalog.read() as tx:
            self.settings: Settings = warehouse.settings(tx)

    def run(self) -> list[IngestResult]:
        if mode_of(self.database) == POLLING:
            return self._polled()
        switch = Switch(self.warehouse, self.database, self.connection, self.settings, self.fence)
        self.database = tidy(switch)
        capture = capture_of(self.database, self.connection, self.settings)
        upto = capture.position()
        there = self.bring(capture, upto)
        while capture.has_more(upto) and self._follows(capture.mode) and (further := capture.position()) != upto:
            upto = further
            there = self.bring(capture, upto)
        self._load(there)
        switch = replace(switch, database=self.database)
        self.database = reconsider(switch, self.bring)
        watch_slot(replace(switch, database=self.database))
        return self.results

    def _polled(self) -> list[IngestResult]:
        """Read all tables in one snapshot, and take over the rows that differ."""
        replicas = self._replicas()
        there = describe_oids(self.connection, [replica.oid for replica in replicas])
        fit = [one for one in replicas if one.status is ReplicaStatus.ACTIVE and self._fits(one, there.get(one.oid))]
        found = [*fit, *self._waiting(there)]
        sources = [Source(replica, shape.anew(_known(replica), there[replica.oid])) for replica in found]
        capture = capture_of(self.database, self.connection, self.settings)
        load(self.warehouse, self.database, sources, capture, fence=self.fence)
        after = {one.relation.id: one.pin.version for one in self._replicas()}
        for replica in found:
            before, now = replica.pin.version, after[replica.relation.id]
            if before is not None and now is not None and before != now:
                count = count_changes(self.warehouse.location_of(replica.relation), before, now)
                result = _result(self.database, replica.relation, count.inserted or 0, count.deleted or 0)
                self.results.append(replace(result, loaded=replica.status is ReplicaStatus.LOADING))
        return self.results

    def _follows(self, mode: str) -> bool:
        """Whether any replica is to be brought further by this capture, or none ever is."""
        found = self._replicas()
        follow = (one.status is ReplicaStatus.ACTIVE and _position(one).startswith(mode) for one in found)
        return any(follow) or all(one.status is ReplicaStatus.BROKEN for one in found)

    def bring(self, capture: Capture, upto: str) -> dict[int, SourceTable]:
        """Bring all replicas that follow their source up to a position; the sources as they are now, by oid."""
        replicas = self._replicas()
        active = [replica for replica in replicas if replica.status is ReplicaStatus.ACTIVE]
        there = describe_oids(self.connection, [replica.oid for replica in replicas])
        current = [replica for replica in active if self._fits(replica, there.get(replica.oid))]
        if current:
            self._move(capture, current, there, upto)
        else:
            # What is to be loaded begins later; the server need not keep anything for those that are broken.
            capture.forget(upto)
        return there

    def _replicas(self) -> list[Replica]:
        """The replicas as they stand, after what a dead process left was finished."""
        with self.warehouse.catalog.read() as tx:
            ids = [replica.relation.id for replica in databases.replicas(tx, self.database.id)]
        recover(self.warehouse, ids)
        with self.warehouse.catalog.read() as tx:
            return databases.replicas(tx, self.database.id)

    def _fits(self, replica: Replica, now: SourceTable | None) -> bool:
        """Whether the source is as the replica knows it; else it is marked, and left out."""
        if now is None:
            self._mark(replica, ReplicaStatus.BROKEN, "its table was dropped")
            return False
        known = _known(replica)
        changed = shape.difference(known, now)
        if changed is not None:
            self._drifted(replica, changed)
            return False
        if (known.schema, known.name) != (now.schema, now.name):
            with self.warehouse.catalog.write() as tx:
                databases.update_replica(tx, replica.relation.id, schema_name=now.schema, table_name=now.name)
        return True

    def _drifted(self, replica: Replica, drift: shape.Drift) -> None:
        """Columns changed under a replica: loaded anew, or left as it is until somebody decides."""
        again = self.settings.on_source_ddl == "reinitialize" or not drift.in_columns
        self._mark(replica, ReplicaStatus.LOADING if again else ReplicaStatus.BROKEN, drift.words)

    def _mark(self, replica: Replica, status: ReplicaStatus, why: str) -> None:
        now = self.warehouse.clock.now()
        with self.warehouse.catalog.write() as tx:
            databases.update_replica(tx, replica.relation.id, status=status, problem=why)
            alerts.add(
                tx,
                event=Event.REINITIALIZE_NEEDED.value,
                relation_id=replica.relation.id,
                severity=Event.REINITIALIZE_NEEDED.severity,
                payload={"replica": str(replica.relation.name), "detail": why},
                now=now,
            )
        if status is ReplicaStatus.BROKEN:
            self.results.append(_result(self.database, replica.relation, problem=why))

    def _move(self, capture: Capture, replicas: Sequence[Replica], there: dict[int, SourceTable], upto: str) -> None:
        """Stage and commit what changed, all at once."""
        by_oid = {replica.oid: replica for replica in replicas}
        prepared: dict[int, Prepared] = {}
        try:
            self._stage(capture, by_oid, there, upto, prepared)
            after = {one.relation.id: _position(one) for one in by_oid.values()}
            # What cancels out may be let go of in a buffer; a slot must never be ahead of the positions.
            changed = prepared.values() if capture.mode != TRIGGER else [m for m in prepared.values() if not m.is_empty]
            moves = bool(changed) or capture.must_move(after.values(), upto)
            if moves:
                members = [
                    self._member(one, prepared.get(one.relation.id), capture.moved(_position(one), upto))
                    for one in by_oid.values()
                ]
                commit_unit(self.warehouse, members, fence=self.fence)
        except BaseException:
            give_up(self.warehouse, replicas, prepared)
            raise
        if moves or (prepared and capture.mode == TRIGGER):
            capture.forget(upto)
        for replica in by_oid.values():
            done = prepared.get(replica.relation.id)
            if done is not None and not done.is_empty:
                self.results.append(_result(self.database, replica.relation, done.inserted, done.deleted))

    def _stage(
        self,
        capture: Capture,
        by_oid: dict[int, Replica],
        there: dict[int, SourceTable],
        upto: str,
        prepared: dict[int, Prepared],
    ) -> None:
        """Stage the change of each replica. Those whose history is lost leave ``by_oid``, to be loaded anew."""
        tables = [shape.renamed(_known(replica), there[oid]) for oid, replica in by_oid.items()]
        after = {oid: _position(replica) for oid, replica in by_oid.items()}
        try:
            for table, changes in capture.changes(tables, after, upto):
                replica = by_oid[table.oid]
                why = changes.schema_changed
                if why is None:
                    try:
                        prepared[replica.relation.id] = self._prepare(self._snapshot(replica), table, changes)
                    except (HistoryLost, NegativeMultiplicity, CorruptTable) as lost:
                        # The others are not to wait for one whose rows are not those that changed.
                        why = f"{lost.message}: {lost.detail}" if lost.detail else lost.message
                if why is not None:
                    del by_oid[table.oid]
                    self._mark(replica, ReplicaStatus.LOADING, why)
        except HistoryLost as lost:
            for replica in by_oid.values():
                self._mark(replica, ReplicaStatus.LOADING, lost.detail or lost.message)
            by_oid.clear()

    def _snapshot(self, replica: Replica) -> Snapshot:
        """The version to start from: what readers see, or a later one with the same rows; else HistoryLost."""
        location = self.warehouse.location_of(replica.relation)
        pinned, newest = replica.pin.version, latest_version(location)
        if pinned is None:
            raise HistoryLost("it was never loaded")
        if newest != pinned:
            count = count_changes(location, pinned, newest)
            if not count.exact or count.inserted or count.deleted:
                raise HistoryLost("somebody else wrote into the replica")
        return open_snapshot(location, newest)

    def _prepare(self, snapshot: Snapshot, table: SourceTable, changes: Changes) -> Prepared:
        names = [column.name for column in table.columns]
        renamed = dict(zip(names, shape.lake_names(names), strict=True))
        rows = changes.rows.select([*names, WEIGHT]).rename_columns([*renamed.values(), WEIGHT])
        engine = self.warehouse.engine
        if changes.truncated:
            frame = engine.from_arrow(net(rows).drop_columns([WEIGHT]), nullable(snapshot.schema))
            return overwrite(engine, snapshot, frame, difference=True, few=Few(engine))
        if changes.by_key:
            given = [renamed[column] for column in changes.key]
            if changes.kept is not None:
                rows = with_kept(engine, snapshot, rows, given, changes.kept, renamed)
            return merge_keyed_table(engine, snapshot, rows, given)
        key = lake_key(table)
        bounds = pc.min_max(rows.column(WEIGHT)).as_py()
        if bounds["min"] == bounds["max"] == 1:
            return _inserted(snapshot, for_spark(rows.drop_columns([WEIGHT]), nullable(snapshot.schema)), key)
        # Rows with a key were netted by it; without one, equal values may be spelled in two ways.
        return merge_table(engine, snapshot, rows if key else net(rows), key)

    def _member(self, replica: Replica, made: Prepared | None, upto: str) -> PinnedMember:
        number = replica.pin.number + 1
        if made is None or made.is_empty:
            version = replica.pin.version if made is None else made.read_version
            assert version is not None
            return PinnedMember(replica.relation.id, number, None, version, upto)
        commit = made.as_commit(app=(application_id(replica.relation.uid), number))
        return PinnedMember(replica.relation.id, number, commit, commit.version, upto)

    def _waiting(self, there: dict[int, SourceTable]) -> list[Replica]:
        with self.warehouse.catalog.read() as tx:
            found = databases.replicas(tx, self.database.id)
        return [one for one in found if one.status is ReplicaStatus.LOADING and one.oid in there]

    def _load(self, there: dict[int, SourceTable]) -> None:
        """Load what is to be loaded, for the first time or anew."""
        switch = Switch(self.warehouse, self.database, self.connection, self.settings, self.fence)
        wanted = [shape.anew(_known(replica), there[replica.oid]) for replica in self._waiting(there)]
        self.database = fall_back(switch, wanted)
        capture = capture_of(self.database, self.connection, self.settings)
        waiting = self._waiting(there)
        sources = []
        for replica in waiting:
            table = shape.anew(_known(replica), there[replica.oid])
            capture.disarm(table)
            capture.arm(table)
            sources.append(Source(replica, table))
        counts = load(self.warehouse, self.database, sources, capture, fence=self.fence)
        for source in sources:
            relation = source.replica.relation
            self.results.append(
                _result(self.database, relation, counts[relation.id], loaded=True, problem=source.replica.problem)
            )


def _position(replica: Replica) -> str:
    if replica.pin.position is None:
        raise InternalError(f"a replica without a position: {replica.relation.name}")
    return replica.pin.position


def _known(replica: Replica) -> SourceTable:
    return shape.from_json(replica.oid, replica.schema, replica.table, replica.shape)


def _inserted(snapshot: Snapshot, rows: pa.Table, key: Sequence[str]) -> Prepared:
    """New rows in new files, written on the driver."""
    staged = stage_made(in_order(rows, key), snapshot, THREADS)
    return Prepared(
        location=snapshot.location,
        read_version=snapshot.version,
        adds=staged.files,
        info=note("ingest", staged.rows, 0),
        inserted=staged.rows,
        stage_ids=(staged.stage_id,),
    )


def _result(
    database: Database,
    relation: Relation,
    inserted: int = 0,
    deleted: int = 0,
    *,
    loaded: bool = False,
    problem: str | None = None,
) -> IngestResult:
    return IngestResult(database.name, str(relation.name), inserted, deleted, loaded, problem)
