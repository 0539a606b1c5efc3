"""Replication slots and publications of a database, by SQL.

A slot is read by functions and not by a replication connection: a tick asks for what lies between two positions,
which is one statement, works through poolers that know no replication protocol, and acknowledges nothing by itself.
``peek`` may be repeated; ``advance`` is the acknowledgement.

The publication lists the tables. It is made before the slot, because the server looks it up as of the moment of each
change that it decodes. It sends partitions as themselves and not as their root: the server would otherwise send
nothing of a TRUNCATE of one partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import errors, sql

from trickle.errors import ConcurrentModification, InternalError, SourceRefused
from trickle.postgres.connect import Connection
from trickle.postgres.tables import Part, Relkind, SourceTable
from trickle.sources.postgres.positions import parse_lsn, show_lsn

SLOT_WAIT = "60s"
"""How long the making of a slot waits for transactions that run."""
LOCK_WAIT = "5s"
"""How long a table's writers are waited for. Others who want to write wait meanwhile, so it is short."""

_PLUGIN = "pgoutput"
_FETCH = 5_000


@dataclass(frozen=True)
class Slot:
    """A logical slot as the server describes it."""

    confirmed: int
    retained: int
    """Bytes of WAL that the server keeps for it."""
    is_active: bool
    lost: str | None
    """Why it can no longer be read."""
    is_unreserved: bool
    """The server may remove WAL that it needs at the next checkpoint."""


_SLOT = """
SELECT database = current_database() AND plugin = %(plugin)s, confirmed_flush_lsn::text,
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn)::bigint, active, wal_status,
    to_jsonb(s) ->> 'invalidation_reason'
FROM pg_replication_slots s WHERE slot_name = %(slot)s"""


def find_slot(connection: Connection, name: str) -> Slot | None:
    """The slot of this name; None when there is none."""
    found = connection.execute(_SLOT, {"slot": name, "plugin": _PLUGIN}).fetchone()
    if found is None:
        return None
    is_ours, confirmed, retained, active, status, reason = found
    if not is_ours:
        raise SourceRefused(
            f"the server has a replication slot {name!r} that is not Trickle's",
            detail="it belongs to another database or another output plugin",
            hint=f"remove it: SELECT pg_drop_replication_slot('{name}')",
        )
    lost = reason or ("its WAL was removed" if status == "lost" or confirmed is None else None)
    return Slot(0 if confirmed is None else parse_lsn(confirmed), retained or 0, active, lost, status == "unreserved")


def create_slot(connection: Connection, name: str) -> None:
    """Make the slot. The server waits for the transactions that run at that moment, of all databases."""
    try:
        with connection.transaction():
            _limit(connection, "statement_timeout", SLOT_WAIT)
            connection.execute("SELECT pg_create_logical_replication_slot(%s, %s)", (name, _PLUGIN))
    except errors.QueryCanceled as error:
        raise ConcurrentModification(
            "the replication slot could not be made",
            detail=f"transactions that began earlier have been running for more than {SLOT_WAIT}",
            hint="look for them in pg_stat_activity, then try again",
        ) from error


def drop_slot(connection: Connection, name: str) -> None:
    """Remove the slot, if there is one."""
    with _alone(name):
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s AND database = current_database()",
            (name,),
        )


def advance(connection: Connection, name: str, lsn: int) -> None:
    """The server may forget what committed with a record that begins before this LSN."""
    with _alone(name):
        connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (name, show_lsn(lsn)))


def flushed(connection: Connection) -> int:
    """An LSN with everything before it on disk, and at least all that had committed when the call began.

    Commits that nobody waits for (``synchronous_commit = off``) may not be on disk yet, and cannot be decoded then.
    In that case a message that nobody reads is written and waited for, which takes everything before it along.
    """
    insert, flush = _one(connection, "SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text")
    if insert == flush:
        return parse_lsn(flush)
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        (written,) = _one(connection, "SELECT pg_logical_emit_message(true, 'trickle', '')::text")
    return parse_lsn(written)


def on_disk(connection: Connection) -> int:
    """Up to where the WAL is on disk."""
    return parse_lsn(_one(connection, "SELECT pg_current_wal_flush_lsn()::text")[0])


_PEEK = """
pg_logical_slot_peek_binary_changes({slot}, {upto}, {most}, 'proto_version', '1', 'publication_names', {publication})"""


def _peek(name: str, upto: int | None, most: int | None) -> sql.Composed:
    return sql.SQL(_PEEK).format(
        slot=sql.Literal(name),
        upto=sql.SQL("NULL") if upto is None else sql.SQL("{}::pg_lsn").format(sql.Literal(show_lsn(upto))),
        most=sql.Literal(most),
        # The option is itself a list of identifiers.
        publication=sql.Literal(sql.Identifier(name).as_string()),
    )


def peek(connection: Connection, name: str, upto: int) -> Iterator[bytes]:
    """The messages of the slot and the publication of this name, up to the first commit that ends at ``upto`` or later.
    They are fetched in pieces; the server holds the rest, on its disk when it is much.
    """
    with _alone(name), connection.transaction(), connection.cursor(f"{name[:50]}_peek", binary=True) as cursor:
        cursor.execute(sql.SQL("SELECT data FROM {}").format(_peek(name, upto, None)))
        while found := cursor.fetchmany(_FETCH):
            yield from (data for (data,) in found)


# A commit's letter is C. The first commit is taken whatever its size: a transaction is not divided.
_STOP = """
SELECT count(*), max(total), min(lsn) FILTER (WHERE ends)::text, max(lsn) FILTER (WHERE ends AND total <= {size})::text
FROM (
    SELECT lsn, get_byte(data, 0) = ascii('C') AS ends, sum(octet_length(data)) OVER (ROWS UNBOUNDED PRECEDING) AS total
    FROM {peek}
) p"""


def stop_before(connection: Connection, name: str, changes: int, size: int) -> int | None:
    """The end of a piece of the backlog that has about so many changes and bytes; None when all of it fits."""
    with _alone(name):
        query = sql.SQL(_STOP).format(peek=_peek(name, None, changes), size=sql.Literal(size))
        found, total, first, last = _one(connection, query)
    if first is None or (found < changes and total <= size):
        return None
    return parse_lsn(last or first)


def ensure_publication(connection: Connection, name: str) -> None:
    """A publication without tables, if there is none of this name."""
    if _one(connection, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = %s)", (name,))[0]:
        return
    # Before 18 generated columns are never sent.
    generated = ", publish_generated_columns = stored" if connection.info.server_version >= 180_000 else ""
    options = f"publish = 'insert, update, delete, truncate', publish_via_partition_root = false{generated}"
    connection.execute(sql.SQL("CREATE PUBLICATION {} WITH ({})").format(sql.Identifier(name), sql.SQL(options)))


def publish(connection: Connection, name: str, table: SourceTable) -> None:
    """Add a table, unless it is there.

    Writers of the table are waited for. A transaction that wrote before the publication had the table is not sent, and
    one that is still running is not in the snapshot of the load that follows: its rows would be nowhere.
    """
    with _locking(table), connection.transaction():
        _limit(connection, "lock_timeout", LOCK_WAIT)
        connection.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(table.quoted))
        there = published(connection, name)
        for one in members(table):
            if one.oid not in there:
                add = sql.SQL("ALTER PUBLICATION {} ADD TABLE ONLY {}").format(sql.Identifier(name), one.quoted)
                connection.execute(add)
        _sign(connection, name, [one.oid for one in members(table)])


def members(table: SourceTable) -> Sequence[SourceTable | Part]:
    """What a publication has to name for a table. Partitions come with their root, also those that are made later;
    inheriting tables do not.
    """
    return [table] if table.kind is Relkind.PARTITIONED else table.parts


def unpublish(connection: Connection, name: str, oids: Iterable[int]) -> None:
    """Take tables out of the publication, those that are in it."""
    for oid in published(connection, name).intersection(oids):
        found = connection.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.oid = %s",
            (oid,),
        ).fetchone()
        if found is not None:
            drop = sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}")
            connection.execute(drop.format(sql.Identifier(name), sql.Identifier(*found)))


def published(connection: Connection, name: str) -> set[int]:
    """The oids of the tables that the publication names."""
    rows = connection.execute(
        "SELECT r.prrelid::bigint FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
        " WHERE p.pubname = %s",
        (name,),
    )
    return {oid for (oid,) in rows}


# Rows of the system's tables that are made or altered anew have another xmin.
_ENTRIES = """
SELECT r.prrelid::bigint, format('%%s.%%s.%%s.%%s', p.oid, p.xmin, r.oid, r.xmin),
    obj_description(p.oid, 'pg_publication')
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %s"""


def unaltered(connection: Connection, name: str) -> set[int]:
    """The oids of the tables that have been in the publication, as it was made, ever since they were published.

    One that was taken out and put back, or a publication that somebody altered or made again, has not sent everything,
    and later servers pass over it in silence. So a comment on the publication names the entries that Trickle made.
    """
    rows = connection.execute(_ENTRIES, (name,)).fetchall()
    return {oid for oid, entry, comment in rows if _signed(comment).get(str(oid)) == entry}


def _sign(connection: Connection, name: str, oids: Iterable[int]) -> None:
    """Note down the entries of tables that were just published."""
    rows = connection.execute(_ENTRIES, (name,)).fetchall()
    there = {str(oid): entry for oid, entry, _ in rows}
    known = next((_signed(comment) for *_, comment in rows), {})
    signed = {oid: entry for oid, entry in known.items() if oid in there}
    signed |= {str(oid): there[str(oid)] for oid in oids}
    comment = _COMMENT + json.dumps(signed, separators=(",", ":"))
    connection.execute(sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(name), sql.Literal(comment)))


_COMMENT = "made by Trickle, which reads this: "


def _signed(comment: str | None) -> dict[str, str]:
    """What a comment names; nothing where it is not Trickle's."""
    if comment is None or not comment.startswith(_COMMENT):
        return {}
    try:
        found = json.loads(comment.removeprefix(_COMMENT))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def drop_publication(connection: Connection, name: str) -> None:
    """Remove the publication, if there is one."""
    connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))


def wal_level(connection: Connection) -> str:
    """What the server writes into its WAL: ``minimal``, ``replica`` or ``logical``."""
    return str(_one(connection, "SELECT current_setting('wal_level')")[0])


def may_replicate(connection: Connection) -> bool:
    """Whether the user of the connection may make slots."""
    found = _one(connection, "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user")
    return bool(found[0])


def _one(
    connection: Connection, query: LiteralString | sql.Composed, values: tuple[str, ...] | None = None
) -> tuple[Any, ...]:
    found = connection.execute(query, values).fetchone()
    if found is None:
        raise InternalError("a query that always has a row had none")
    return found


def _limit(connection: Connection, setting: str, longest: str) -> None:
    connection.execute("SELECT set_config(%s, %s, true)", (setting, longest))


@contextmanager
def _locking(table: SourceTable) -> Iterator[None]:
    try:
        yield
    except errors.LockNotAvailable as error:
        raise ConcurrentModification(
            f"{table.shown} could not be published",
            detail=f"a transaction that writes to it has been running for more than {LOCK_WAIT}",
            hint="look for it in pg_stat_activity, then try again",
        ) from error


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Only one session at a time can use a slot."""
    try:
        yield
    except errors.ObjectInUse as error:
        raise ConcurrentModification(
            f"another session uses the replication slot {name!r}", detail=str(error).splitlines()[0], hint="try again"
        ) from error
