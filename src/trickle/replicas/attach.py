"""Attaching a PostgreSQL database and letting go of it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import sleep

from psycopg import errors

from trickle.algebra.names import TableName
from trickle.apply.unit import recover
from trickle.catalog import databases, hosted, pins, relations
from trickle.catalog.outside import Database, Replica
from trickle.catalog.records import Kind, Relation
from trickle.errors import ConcurrentModification, InvalidOption, SourceRefused, SourceUnreachable
from trickle.lake.create import create
from trickle.lake.create import drop as drop_table
from trickle.lake.location import Location
from trickle.postgres.connect import Connection, check_dsn, check_writable, connected, shown
from trickle.postgres.tables import SourceTable, describe, listing
from trickle.replicas import shape
from trickle.replicas.captures import POLLING, SCHEDULE, capture_of, check_mode, options_of
from trickle.replicas.loading import Progress, Source, lake_key, lake_schema, load
from trickle.replicas.locks import one_at_a_time
from trickle.replicas.polling import check_interval
from trickle.replicas.switching import Switch, choose, disarm_all, tidy
from trickle.sources.postgres.capture import Capture
from trickle.tables.ddl import refuse_removal, remove, taken
from trickle.warehouse import Warehouse

ATTEMPTS = 6
PAUSE = 0.5
"""Seconds between two attempts to get the lock of a table."""
IDENTITY = "identity"
"""The option that says which database it is."""

_LISTED = re.compile(r'(?:"(?:[^"]|"")*"|[^,"])+')
"""The names in a text with commas, as SQL gives a list."""
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".]+?))\s*(\.|\Z)')


def attach_postgres(
    warehouse: Warehouse,
    name: str,
    dsn: str,
    *,
    tables: Sequence[str] | str | None = None,
    schema: str = "public",
    cdc_mode: str = "auto",
    schedule: str | None = None,
    progress: Progress = lambda _name, _rows: None,
) -> list[Replica]:
    """Attach tables of a database, load them, and capture what changes from then on.

    ``tables`` are names (``orders``, ``sales.orders``, ``"Odd.Name"``) in ``schema`` where they name none; without
    them, all tables of the schema. A name that is attached already gets further tables. ``schedule`` says how often
    they are read, with ``cdc_mode`` polling.
    """
    mode = check_mode(cdc_mode)
    place = shown(check_dsn(dsn))
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    options = options_of(settings)
    if mode == POLLING:
        options[SCHEDULE] = check_interval(schedule, settings)
    elif schedule is not None:
        raise InvalidOption("a schedule is for cdc_mode 'polling'", hint="other captures are read by every tick")
    with connected(dsn) as connection:
        check_writable(connection, place)
        found = [shape.usable(table, by_polling=mode == POLLING) for table in _wanted(connection, tables, schema)]
        if not found:
            raise InvalidOption(f"there is no table in the schema {schema!r} of {place}")
        with one_at_a_time(connection, name):
            options[IDENTITY] = _identity(connection)
            database = _entered(warehouse, name, dsn, mode, options)
            made: list[Source] = []
            try:
                switch = Switch(warehouse, database, connection, settings)
                # Of an address that is another one now nothing is kept before it has proved itself.
                database = replace(choose(replace(switch, database=tidy(switch)), found), dsn=dsn)
                # One by one: of those before one that fails, all is taken back.
                made.extend(_enter(warehouse, database, table, schema) for table in found)
                capture = capture_of(database, connection, settings)
                for source in made:
                    _arm(capture, source.table)
                load(warehouse, database, made, capture, progress=progress)
            except BaseException:
                with suppress(Exception):
                    _let_go(replace(switch, database=database), [source.replica for source in made])
                raise
            with warehouse.catalog.write() as tx:
                kept = databases.get(tx, name).options
                databases.update(tx, database.id, dsn=dsn, options={**kept, IDENTITY: options[IDENTITY]})
    with warehouse.catalog.read() as tx:
        attached = {source.replica.relation.id for source in made}
        return [one for one in databases.replicas(tx, database.id) if one.relation.id in attached]


def _arm(capture: Capture, table: SourceTable) -> None:
    """Arm a table that others write to.

    Its lock is waited for only a short while, as whoever comes later waits too. Between two attempts they have their
    turn.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            capture.arm(table)
        except (ConcurrentModification, errors.LockNotAvailable, errors.DeadlockDetected):
            if not left:
                raise
            sleep(PAUSE)
        else:
            break


def detach(
    warehouse: Warehouse,
    name: str,
    *,
    tables: Sequence[str] | str | None = None,
    cascade: bool = False,
    force: bool = False,
) -> list[Relation]:
    """Let go of a database, or of some of its replicas: here, and at the source.

    Refused while others read a replica, unless ``cascade``. ``force`` goes on when the server does not answer or lets
    nobody in, and leaves there what captures.
    """
    with warehouse.catalog.read() as tx:
        database = databases.get(tx, name)
    wanted = _LISTED.findall(tables) if isinstance(tables, str) else tables
    if not cascade:
        # All or none: half a database would have to be let go of again.
        refuse_removal(warehouse, [replica.relation for replica in _going(warehouse, database, wanted)[0]], "detach")
    try:
        with connected(database.dsn) as connection, one_at_a_time(connection, database.name):
            return _detached(warehouse, name, wanted, connection, cascade=cascade)
    except (SourceUnreachable, SourceRefused):
        if not force:
            raise
    return _detached(warehouse, name, wanted, None, cascade=cascade)


def _going(
    warehouse: Warehouse, database: Database, wanted: Sequence[str] | None
) -> tuple[list[Replica], list[Replica]]:
    """The replicas that are to be let go of, and those that stay."""
    with warehouse.catalog.read() as tx:
        found = databases.replicas(tx, database.id)
    going = found if wanted is None else [_named(found, table) for table in wanted]
    return going, [replica for replica in found if replica not in going]


def _detached(
    warehouse: Warehouse, name: str, wanted: Sequence[str] | None, connection: Connection | None, *, cascade: bool
) -> list[Relation]:
    """The source first: the catalog is the only one who knows what is armed there, so it forgets last. When that does
    not come to its end, the next ingest arms and loads anew what is still here, and detaching can be repeated.
    """
    with warehouse.catalog.read() as tx:
        database = databases.get(tx, name)
        settings = warehouse.settings(tx)
    going, staying = _going(warehouse, database, wanted)
    recover(warehouse, [replica.relation.id for replica in going])
    if connection is not None:
        disarm_all(Switch(warehouse, database, connection, settings), going, last=not staying)
    gone: list[Relation] = []
    for replica in going:
        gone += remove(warehouse, replica.relation, cascade=cascade, statement="detach")
    forget_if_empty(warehouse, database.name)
    return gone


def _named(replicas: Iterable[Replica], name: str) -> Replica:
    schema, table = split_name(name)
    for replica in replicas:
        if table in (replica.table, replica.relation.name.table) and schema in (None, replica.schema):
            return replica
    raise InvalidOption(f"no table {name!r} is attached")


def split_name(text: str) -> tuple[str | None, str]:
    """Schema and name of a table, as people write them; exact, without folding.

    >>> split_name('sales.orders'), split_name('"Odd.Name"'), split_name('orders')
    (('sales', 'orders'), (None, 'Odd.Name'), (None, 'orders'))
    """
    parts: list[str] = []
    place = 0
    while place < len(text) or not parts:
        match = _PART.match(text, place)
        if match is None or len(parts) == 2:
            raise InvalidOption(f"not the name of a table: {text!r}", hint='write orders, sales.orders or "Odd.Name"')
        quoted, plain, _ = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain)
        place = match.end()
    return (parts[0], parts[1]) if len(parts) == 2 else (None, parts[0])


def _wanted(connection: Connection, tables: Sequence[str] | str | None, schema: str) -> list[SourceTable]:
    if tables is None:
        return listing(connection, schema)
    given_names = _LISTED.findall(tables) if isinstance(tables, str) else tables
    names = [split_name(table) for table in given_names]
    return [describe(connection, given or schema, table) for given, table in names]


def _identity(connection: Connection) -> str:
    """What a database is known by, whatever its address: that of its server, and its number there."""
    found = connection.execute(
        "SELECT s.system_identifier::text || '/' || d.oid FROM pg_control_system() s, pg_database d"
        " WHERE d.datname = current_database()"
    ).fetchone()
    assert found is not None
    return str(found[0])


def _entered(warehouse: Warehouse, name: str, dsn: str, mode: str, options: dict[str, object]) -> Database:
    """The database of this name, which may get further tables, or a new one."""
    with warehouse.catalog.write() as tx:
        known = databases.find(tx, name)
        if known is None:
            return databases.add(tx, name, dsn=dsn, cdc_mode=mode, options=options, now=warehouse.clock.now())
        if known.options.get(IDENTITY, options[IDENTITY]) != options[IDENTITY]:
            raise InvalidOption(
                f"{known.name} is attached already, and is another database",
                detail=f"it is {shown(known.dsn)}, and the address now given leads to {shown(dsn)}",
                hint="attach this one under another name, or detach that one first",
            )
        return known


def _enter(warehouse: Warehouse, database: Database, table: SourceTable, schema: str) -> Source:
    """Make the lake table of a replica, and enter it in the catalog without contents."""
    plain = table.name if table.schema == schema else f"{table.schema}_{table.name}"
    name = TableName(database.name, plain)
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, name)
    if existing is not None:
        raise taken(existing)
    location = warehouse.place_for(name)
    create(location, lake_schema(table), comment=f"replica of {table.shown} in {database.name}")
    try:
        return Source(_register(warehouse, database, table, name, location), table)
    except BaseException:
        drop_table(location)
        raise


def _register(
    warehouse: Warehouse, database: Database, table: SourceTable, name: TableName, location: Location
) -> Replica:
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        relation = relations.add(
            tx,
            name=name,
            kind=Kind.REPLICA,
            uid=uuid.uuid4().hex,
            location=warehouse.relative(location),
            key=lake_key(table),
            now=now,
        )
        pins.add(tx, relation.id, now)
        databases.add_replica(
            tx,
            relation.id,
            database.id,
            oid=table.oid,
            schema=table.schema,
            table=table.name,
            shape=shape.to_json(table),
        )
        return databases.replica_of(tx, relation.id)


def _let_go(switch: Switch, replicas: Sequence[Replica]) -> None:
    """Half a database would be neither here nor there: what is not loaded is let go of, at the source and then here.
    What cannot be disarmed stays, to be loaded by the next ingest or detached.
    """
    with connected(switch.database.dsn) as connection:
        with switch.warehouse.catalog.read() as tx:
            known = databases.replicas(tx, switch.database.id)
        disarm_all(replace(switch, connection=connection), replicas, last=len(known) == len(replicas))
    for replica in replicas:
        # Between intent and end the unit will happen: then the replica stays.
        with suppress(ConcurrentModification):
            remove(switch.warehouse, replica.relation, cascade=False, statement="detach")
    forget_if_empty(switch.warehouse, switch.database.name)


def forget_if_empty(warehouse: Warehouse, name: str) -> None:
    """Forget a database of which nothing is here any more, and which holds nothing of ours."""
    with warehouse.catalog.write() as tx:
        database = databases.find(tx, name)
        if database and not databases.replicas(tx, database.id) and not hosted.listing(tx, database.id):
            databases.remove(tx, database.id)
