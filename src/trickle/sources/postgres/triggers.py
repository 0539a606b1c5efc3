"""The SQL of trigger capture: what is made beside a table of the user's, and how its changes are asked for. Pure.

Every table has a buffer in a schema of Trickle's own, named by the oid, so that it survives renaming, and by whom it is
for: whoever else attaches the table has a buffer and triggers too, and forgets in its own time. The triggers
write whole rows: an insertion is a row with ``+``, a deletion one with ``-``, an update both, so that the net change
of any stretch of time is a sum. An update that changes none of the used columns is left out where a key lets old and
new rows be paired; ``changed`` says by a bit for each used column which of them differ.

Every row is stamped with its transaction. A position is a ``pg_snapshot``, and what lies between two positions are the
rows whose transaction is visible in the one and not in the other: a transaction that commits late has a small number
and is not skipped for it.

A trigger must never make a statement of the user's fail. So before anything else it compares the columns of the table
with those that it was made for; if one was dropped, renamed or retyped since, it leaves a mark (``S``) in place of
rows, and ingest loads the table anew or refuses to go on. It does so too when the table has a part that it had not: if
that is dropped before the next ingest, its rows go and nobody tells.

Statement triggers fire for the table that a statement names. So a partitioned table and every partition have their own,
all of which write into one buffer: a change is seen once, whichever of them was named. A TRUNCATE of one of them says
nothing of the rows of the others, and which rows went is not told: such a table is loaded anew (``P``).

The functions run with the rights of their owner and a pinned search_path: writers need no rights on the buffers. Where
they write texts, the settings that decide how a value is spelled are pinned too: the writer's own are not ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from trickle.postgres.connect import STEADY
from trickle.postgres.tables import Relkind, SourceColumn, SourceTable

INSERTED, DELETED, TRUNCATED, PARTLY, SHAPE, MARK = "+", "-", "T", "P", "S", "M"
"""What a row of a buffer says: a row came, a row went, all rows went, all rows of a part went, the columns changed, the
buffer is whole.
"""

CHANNEL = "trickle"
"""What listeners hear when something was captured."""

DEBOUNCE_MS = 50
"""A session says at most once in this time that it changed something."""

PREFIX = "trickle_"

_EQUAL_IS_SAME = {"bool", "int2", "int4", "int8", "oid", "date", "timestamp", "timestamptz", "uuid", "bytea"}
_TEXTS = {"text", "varchar", "name"}


@dataclass(frozen=True)
class Style:
    """How buffers are made."""

    owner: str
    """The attachment that they are for, as a short word of its own."""
    schema: str = "trickle_capture"
    row_level: bool = False
    unlogged: bool = False
    guarded: bool = True
    """Whether PostgreSQL itself refuses to drop or retype a used column."""


@dataclass(frozen=True)
class Family:
    """The tables of a source when it is armed."""

    tables: Sequence[int]
    """The source, and all that inherit from it, partitions included."""
    parents: Sequence[int]
    """Those of them that others inherit from, or may."""
    links: int
    """How many times one inherits from another."""


def buffer_name(style: Style, oid: int) -> sql.Composed:
    """The buffer of a source."""
    return _own(style, "changes", oid)


def sequence_name(style: Style, oid: int) -> sql.Composed:
    """What numbers the statements that changed a source."""
    return _own(style, "statements", oid)


def function_name(style: Style, oid: int) -> sql.Composed:
    """What the triggers of a source run, on all of its tables."""
    return _own(style, "capture", oid)


def _own(style: Style, what: str, oid: int) -> sql.Composed:
    return sql.SQL("{}.{}").format(sql.Identifier(style.schema), sql.Identifier(f"{what}_{oid}_{style.owner}"))


def make_schema(style: Style) -> sql.Composed:
    """The schema of all buffers."""
    return sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(style.schema))


def make_buffer(style: Style, table: SourceTable) -> sql.Composed:
    """A buffer with its first row, which an unlogged table loses in a crash like all others. Its transaction tells this
    buffer from one that is made later under the same name.
    """
    columns = [sql.SQL("{} {}").format(_column(place), _stored(column)) for place, column in enumerate(table.columns)]
    return sql.SQL(
        "CREATE SEQUENCE {sequence};"
        'CREATE {unlogged} TABLE {buffer} (seq bigint, xid xid8, op "char" NOT NULL, changed varbit, {columns});'
        "INSERT INTO {buffer} (op, xid) VALUES ({mark}, pg_current_xact_id())"
    ).format(
        sequence=sequence_name(style, table.oid),
        unlogged=sql.SQL("UNLOGGED" if style.unlogged else ""),
        buffer=buffer_name(style, table.oid),
        columns=sql.SQL(", ").join(columns),
        mark=MARK,
    )


def drop_buffer(style: Style, oid: int) -> sql.Composed:
    """The buffer and its sequence, gone."""
    return sql.SQL("DROP TABLE IF EXISTS {}; DROP SEQUENCE IF EXISTS {}").format(
        buffer_name(style, oid), sequence_name(style, oid)
    )


def drop_function(style: Style, oid: int) -> sql.Composed:
    """The function of a source, and all triggers with it."""
    return sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function_name(style, oid))


def make_function(style: Style, table: SourceTable, family: Family) -> sql.Composed:
    """What the triggers of a source run; the body is one literal, quoted as a whole."""
    branches = _for_rows(style, table) if style.row_level else _for_statements(style, table)
    body = _body(style, table, family, branches)
    return sql.SQL(
        "CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
        " SET search_path = pg_catalog, pg_temp{} AS {}"
    ).format(function_name(style, table.oid), _steady(table), sql.Literal(body.as_string(None)))


def _steady(table: SourceTable) -> sql.Composable:
    # Every setting is set and taken back at each call: that is left out where nothing is spelled.
    if all(column.type.builtin for column in table.columns):
        return sql.SQL("")
    settings = (sql.SQL(" SET {} = {}").format(sql.Identifier(name), value) for name, value in STEADY.items())
    return sql.SQL("").join(settings)


def make_triggers(style: Style, table: SourceTable, oid: int, on: sql.Composable) -> list[sql.Composed]:
    """The triggers of the source on one of its tables."""
    row, statement = sql.SQL("FOR EACH ROW"), sql.SQL("FOR EACH STATEMENT")
    old, new = sql.SQL(" OLD TABLE AS trickle_old"), sql.SQL(" NEW TABLE AS trickle_new")
    transitions = {"insert": new, "delete": old, "update": old + new}
    made = [_trigger(style, table, on, "truncate", sql.SQL("AFTER TRUNCATE"), statement)]
    if _is_handed_down(style, table, oid):
        return made
    for event, tables in transitions.items():
        timing = row if style.row_level else sql.SQL("REFERENCING{} {}").format(tables, statement)
        made.append(_trigger(style, table, on, event, sql.SQL("AFTER " + event.upper()), timing))
    if style.guarded:
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
        when = sql.SQL("AFTER UPDATE OF {}").format(names)
        made.append(_trigger(style, table, on, "guard", when, sql.SQL("FOR EACH STATEMENT WHEN (false)")))
    return made


def _is_handed_down(style: Style, table: SourceTable, oid: int) -> bool:
    """Whether PostgreSQL itself gives a partition the triggers for rows, as it does to partitions to come. It does not
    so with triggers for statements, and TRUNCATE has no others.
    """
    return style.row_level and table.kind is Relkind.PARTITIONED and oid != table.oid


def trigger_names(style: Style, table: SourceTable, oid: int) -> list[str]:
    """The names of the triggers that one of the tables of an armed source has."""
    guarded = style.guarded and not _is_handed_down(style, table, oid)
    events = ["truncate", "insert", "delete", "update", *(["guard"] if guarded else [])]
    return [trigger_name(style, event) for event in events]


def trigger_name(style: Style, event: str) -> str:
    """The trigger for an event: a table can have those of several attachments."""
    return f"{PREFIX}{event}_{style.owner}"


def _trigger(
    style: Style, table: SourceTable, on: sql.Composable, event: str, when: sql.Composable, timing: sql.Composable
) -> sql.Composed:
    return sql.SQL("CREATE TRIGGER {} {} ON {} {} EXECUTE FUNCTION {}()").format(
        sql.Identifier(trigger_name(style, event)), when, on, timing, function_name(style, table.oid)
    )


_BODY = """
<<capture>>
DECLARE
    statement bigint;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO {buffer} (seq, xid, op) VALUES (
            nextval({sequence}),
            pg_current_xact_id(),
            CASE WHEN TG_RELID <> {oid} OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = {oid})
                THEN {partly} ELSE {truncated} END::"char"
        );
    ELSIF (
        SELECT count(*) FROM pg_attribute a
        WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND a.atttypid || ' ' || a.attname = ANY ({columns})
    ) <> {count} OR {is_grown} THEN
        INSERT INTO {buffer} (seq, xid, op) VALUES (nextval({sequence}), pg_current_xact_id(), {shape});
    ELSE
        capture.statement := nextval({sequence});
        {branches}
    END IF;
    IF current_setting('trickle.tick', true) IS DISTINCT FROM {tick} AND {may_notify} THEN
        PERFORM set_config('trickle.tick', {tick}, false);
        NOTIFY {channel};
    END IF;
    RETURN NULL;
END"""

_TICK = f"(extract(epoch FROM clock_timestamp()) * 1000)::bigint / {DEBOUNCE_MS}"


_MAY_NOTIFY = "current_setting('max_prepared_transactions') = '0'"
"""A transaction that notified cannot be prepared, and the user's must not fail for us."""


def _is_grown(style: Style, family: Family) -> sql.Composed:
    """Whether a part may be among what a statement changed that was not there when the source was armed.

    A trigger for rows runs on the part itself. One for statements runs on the table that was named, where a part more
    is a link more; one less, and ingest sees itself that a part is gone.
    """
    if style.row_level:
        return sql.SQL("TG_RELID <> ALL ({}::oid[])").format(list(family.tables))
    return sql.SQL(
        "(TG_RELID = ANY ({0}::oid[])"
        " AND (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = ANY ({0}::oid[])) <> {1})"
    ).format(list(family.parents), family.links)


def _body(style: Style, table: SourceTable, family: Family, branches: sql.Composable) -> sql.Composed:
    sequence = sequence_name(style, table.oid).as_string(None)
    return sql.SQL(_BODY).format(
        buffer=buffer_name(style, table.oid),
        sequence=sql.SQL("{}::regclass").format(sql.Literal(sequence)),
        oid=sql.SQL("{}::oid").format(table.oid),
        partly=PARTLY,
        truncated=TRUNCATED,
        shape=SHAPE,
        columns=sql.SQL("{}::text[]").format(sql.Literal([f"{one.type_oid} {one.name}" for one in table.columns])),
        count=len(table.columns),
        is_grown=_is_grown(style, family),
        may_notify=sql.SQL(_MAY_NOTIFY),
        branches=branches,
        tick=sql.SQL(f"({_TICK})::text"),
        channel=sql.Identifier(CHANNEL),
    )


def _for_statements(style: Style, table: SourceTable) -> sql.Composed:
    columns, insert = _columns(table), _insert(style, table)

    def side(op: str, relation: str) -> sql.Composed:
        values = sql.SQL(", ").join(_value(column, "t") for column in table.columns)
        return sql.SQL("{} SELECT capture.statement, pg_current_xact_id(), {}, NULL, {} FROM {} t;").format(
            insert, op, values, sql.SQL(relation)
        )

    gone, come = side(DELETED, "trickle_old"), side(INSERTED, "trickle_new")
    update = _paired(table, insert, columns) if table.key else sql.SQL("{} {}").format(gone, come)
    return sql.SQL("IF TG_OP = 'INSERT' THEN {come} ELSIF TG_OP = 'DELETE' THEN {gone} ELSE {update} END IF;").format(
        come=come, gone=gone, update=update
    )


def _paired(table: SourceTable, insert: sql.Composable, columns: sql.Composable) -> sql.Composed:
    """Old and new rows of one key side by side; a key that changed has one side only, and is kept.

    OFFSET 0 has PostgreSQL work out the mask once, and not at every place where it is used.
    """
    # A type that is not built in has its operators in a schema that the search_path leaves out: its text is compared.
    key = [table.column(name) for name in table.key]
    old_first, new_first = _value(key[0], "o"), _value(key[0], "n")
    return sql.SQL(
        "{insert} SELECT capture.statement, pg_current_xact_id(), v.op, m.changed, {picked}"
        " FROM trickle_old o FULL JOIN trickle_new n ON {same}"
        " CROSS JOIN LATERAL (SELECT CASE WHEN {one_side} THEN NULL ELSE {mask} END AS changed OFFSET 0) m"
        ' CROSS JOIN LATERAL (VALUES ({gone}::"char", {old}), ({come}::"char", {new})) v (op, {columns})'
        " WHERE CASE WHEN {one_side} THEN (v.op = {gone}) = ({new_first} IS NULL) ELSE bit_count(m.changed) > 0 END;"
    ).format(
        insert=insert,
        picked=sql.SQL(", ").join(sql.SQL("v.{}").format(_column(place)) for place in range(len(table.columns))),
        same=sql.SQL(" AND ").join(sql.SQL("{} = {}").format(_value(one, "o"), _value(one, "n")) for one in key),
        one_side=sql.SQL("({} IS NULL OR {} IS NULL)").format(old_first, new_first),
        mask=_mask(table.columns, "o", "n"),
        gone=DELETED,
        come=INSERTED,
        old=sql.SQL(", ").join(_value(column, "o") for column in table.columns),
        new=sql.SQL(", ").join(_value(column, "n") for column in table.columns),
        columns=columns,
        new_first=new_first,
    )


def _for_rows(style: Style, table: SourceTable) -> sql.Composed:
    insert = _insert(style, table)

    def values(op: str, row: str, changed: sql.Composable) -> sql.Composed:
        return sql.SQL("(capture.statement, pg_current_xact_id(), {}, {}, {})").format(
            op, changed, sql.SQL(", ").join(_value(column, row) for column in table.columns)
        )

    nothing, mask = sql.SQL("NULL"), _mask(table.columns, "OLD", "NEW")
    return sql.SQL(
        "IF TG_OP = 'INSERT' THEN {insert} VALUES {come};"
        " ELSIF TG_OP = 'DELETE' THEN {insert} VALUES {gone};"
        " ELSIF bit_count({mask}) > 0 THEN {insert} VALUES {old}, {new}; END IF;"
    ).format(
        insert=insert,
        come=values(INSERTED, "NEW", nothing),
        gone=values(DELETED, "OLD", nothing),
        mask=mask,
        old=values(DELETED, "OLD", mask),
        new=values(INSERTED, "NEW", mask),
    )


def _insert(style: Style, table: SourceTable) -> sql.Composed:
    return sql.SQL("INSERT INTO {} (seq, xid, op, changed, {})").format(buffer_name(style, table.oid), _columns(table))


def _columns(table: SourceTable) -> sql.Composed:
    return sql.SQL(", ").join(_column(place) for place in range(len(table.columns)))


def _column(place: int) -> sql.Identifier:
    """A column of a buffer has a name of its own: the user's may be one of Trickle's."""
    return sql.Identifier(f"c{place}")


def _stored(column: SourceColumn) -> sql.Composable:
    """Types of users and extensions are kept as text: a buffer must not stand in the way of whoever alters them."""
    return sql.Identifier("pg_catalog", column.type.name) if column.type.builtin else sql.SQL("text")


def _value(column: SourceColumn, row: str) -> sql.Composed:
    value = sql.SQL("{}.{}").format(sql.SQL(row), sql.Identifier(column.name))
    return value if column.type.builtin else sql.SQL("({})::text").format(value)


def _mask(columns: Sequence[SourceColumn], old: str, new: str) -> sql.Composed:
    """A bit for each column: whether old and new differ, to the last bit of their spelling."""
    bits = sql.SQL(" || ").join(
        sql.SQL("CASE WHEN {} THEN B'1' ELSE B'0' END").format(_differs(column, old, new)) for column in columns
    )
    return sql.SQL("({})").format(bits)


def _differs(column: SourceColumn, old: str, new: str) -> sql.Composed:
    name = sql.Identifier(column.name)
    before, after = sql.SQL("{}.{}").format(sql.SQL(old), name), sql.SQL("{}.{}").format(sql.SQL(new), name)
    if column.type.builtin and column.type.name in _EQUAL_IS_SAME:
        return sql.SQL("{} IS DISTINCT FROM {}").format(before, after)
    if column.type.builtin and column.type.name in _TEXTS:
        return sql.SQL('{} COLLATE "C" IS DISTINCT FROM {} COLLATE "C"').format(before, after)
    # Equal is not the same: 1 day is 24 hours, and json has no equality at all.
    return sql.SQL("record_image_ne(ROW({}), ROW({}))").format(before, after)


def read_changes(style: Style, table: SourceTable, after: str, upto: str, *, since: int | None) -> sql.Composed:
    """Operation and columns of what was captured between two positions, later than statement ``since``."""
    return sql.SQL("SELECT op, {} FROM {} WHERE {} AND op IN ({}, {}){}").format(
        _columns(table),
        buffer_name(style, table.oid),
        _between(after, upto),
        INSERTED,
        DELETED,
        sql.SQL("") if since is None else sql.SQL(" AND seq > {}").format(since),
    )


def summarise(style: Style, table: SourceTable, after: str, upto: str) -> sql.Composed:
    """How many rows and bytes lie between two positions, the last TRUNCATE among them, those of a part, marks of a
    changed shape, and whether the buffer is whole.
    """
    return sql.SQL(
        "SELECT count(*) FILTER (WHERE op IN ('+', '-') AND {between}),"
        " coalesce(sum({size}) FILTER (WHERE op IN ('+', '-') AND {between}), 0)::bigint,"
        " max(seq) FILTER (WHERE op = 'T' AND {between}),"
        " count(*) FILTER (WHERE op = 'P' AND {between}),"
        " count(*) FILTER (WHERE op = 'S' AND {between}),"
        " count(*) FILTER (WHERE op = 'M' AND pg_visible_in_snapshot(xid, {after}::pg_snapshot)) FROM {buffer}"
    ).format(
        # Of a value that is stored out of line this reads the length alone.
        size=sql.SQL(" + ").join(
            sql.SQL("coalesce(pg_column_size({}), 0)::bigint").format(_column(place))
            for place in range(len(table.columns))
        ),
        between=_between(after, upto),
        after=sql.Literal(after),
        buffer=buffer_name(style, table.oid),
    )


def forget(style: Style, oid: int, upto: str) -> sql.Composed:
    """Remove what the lake holds."""
    return sql.SQL("DELETE FROM {} WHERE op <> {} AND pg_visible_in_snapshot(xid, {}::pg_snapshot)").format(
        buffer_name(style, oid), MARK, sql.Literal(upto)
    )


def empty(style: Style, oid: int, made: str) -> sql.Composed:
    """Remove everything at a stroke; the first row stays as it was."""
    return sql.SQL("TRUNCATE {0}; INSERT INTO {0} (op, xid) VALUES ({1}, {2}::xid8)").format(
        buffer_name(style, oid), MARK, sql.Literal(made)
    )


def _between(after: str, upto: str) -> sql.Composed:
    return sql.SQL(
        "(pg_visible_in_snapshot(xid, {}::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, {}::pg_snapshot))"
    ).format(sql.Literal(upto), sql.Literal(after))
