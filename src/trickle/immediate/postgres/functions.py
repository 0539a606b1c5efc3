"""The functions that keep one stream table, as PL/pgSQL (pure).

    before    counts the statements that are under way on sources of the stream table, and takes the lock of the whole
    after     one for each source and kind of statement. Where its statement is the only one, it brings the stream table
              up to it from the transition tables. Where there are others (one statement may change several tables: by
              a foreign key's cascade, a trigger of the user's, WITH ... AS (DELETE ...), MERGE), the changes wait
    settle    brings the stream table up to all changes that waited, when the last of those statements is done
    rebuild   computes it anew: TRUNCATE has no transition tables

The count is a setting that lasts as long as the transaction; a savepoint that is rolled back takes its part along.
All run with the rights of who made the stream table, on a search path that nobody else can write to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trickle.algebra.weights import WEIGHT
from trickle.delta.typed import typed_nulls
from trickle.immediate.postgres.compiling import Compiled
from trickle.immediate.postgres.faces import NEW_ROWS, OLD_ROWS, Event, SourceFaces
from trickle.immediate.postgres.locking import BUCKET, LOCK_CLASS, bucket_base, lock_number, touched_buckets
from trickle.immediate.postgres.names import SCHEMA, ours
from trickle.immediate.postgres.statement import Change, Store, statement
from trickle.immediate.postgres.triggers import EVENTS
from trickle.operators import Operator, Scan, Step
from trickle.postgres.connect import STEADY
from trickle.postgres.names import identifier, literal
from trickle.sql.lower import lower

MANY = 100
"""From so many rows on a change is planned by itself; fewer share a plan that expects few."""

# What a value is must not depend on who writes: on the time zone of a session, or on how it spells dates.
_STEADY = "".join(f" SET {name} = {literal(value)}" for name, value in STEADY.items())


@dataclass(frozen=True)
class Function:
    """A function of ours: its name in our schema, what it returns, its body."""

    name: str
    returns: str
    body: str

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        tag = "$trickle$"
        while tag in self.body:
            tag = f"{tag[:-1]}_$"
        return (
            f"CREATE OR REPLACE FUNCTION {ours(self.name)}() RETURNS {self.returns} LANGUAGE plpgsql SECURITY DEFINER"
            f" SET search_path = pg_catalog, {SCHEMA}, pg_temp{_STEADY} AS {tag}\n{self.body}\n{tag}"
        )


@dataclass(frozen=True)
class _Flags:
    """What a transaction remembers about a stream table, as SQL."""

    number: int

    @property
    def open(self) -> str:
        return literal(f"trickle.open_{self.number}")

    @property
    def opened(self) -> str:
        return f"coalesce(nullif(current_setting({self.open}, true), ''), '0')::int"

    @property
    def wait(self) -> str:
        return literal(f"trickle.waiting_{self.number}")

    @property
    def waiting(self) -> str:
        return f"coalesce(current_setting({self.wait}, true), '')"


def before(number: int, name: str, family: int | None) -> Function:
    """What is done before a statement on a source; ``family`` is the lock of the whole, None to lock by group."""
    flags = _Flags(number)
    lock = "" if family is None else f"  {_lock(family)}\n"
    body = f"""BEGIN
{_refuse_isolation(name)}{lock}  PERFORM set_config({flags.open}, ({flags.opened} + 1)::text, true);
  RETURN NULL;
END"""
    return Function(f"before_{number}", "trigger", body)


def truncated(number: int, name: str, family: int) -> Function:
    """What is done after TRUNCATE of a source."""
    flags = _Flags(number)
    body = f"""BEGIN
{_refuse_isolation(name)}  IF {flags.opened} > 0 THEN
    PERFORM set_config({flags.wait}, 'rebuild', true);
    RETURN NULL;
  END IF;
  {_lock(family)}
  PERFORM {ours(f"rebuild_{number}")}();
  RETURN NULL;
END"""
    return Function(f"truncate_{number}", "trigger", body)


@dataclass(frozen=True)
class Functions:
    """All functions of a stream table."""

    number: int
    name: str
    compiled: Compiled

    @cached_property
    def is_by_group(self) -> bool:
        """Whether writers lock the groups that they touch, and not the whole."""
        return self._buckets is not None

    @cached_property
    def _buckets(self) -> Operator | None:
        return touched_buckets(tuple(store.stage for store in self.compiled.stores))

    def all(self, whole: int | None, lock: int) -> Iterator[Function]:
        """The functions. ``whole`` is the lock that writers take, None where they lock by group."""
        yield before(self.number, self.name, whole)
        yield truncated(self.number, self.name, lock)
        yield self.rebuild()
        yield self.settle()
        for label in self.compiled.tables:
            for event in EVENTS:
                yield self.after(label, event)

    def pending(self, label: str) -> str:
        """The name of the table in which changes of a source wait."""
        return f"pending_{self.number}_{self.place(label)}"

    def place(self, label: str) -> int:
        """The number of a source."""
        return list(self.compiled.tables).index(label) + 1

    def after(self, label: str, event: Event) -> Function:
        """What is done after a statement of one kind on one source."""
        faces = self._faces({label: event})
        text = self.statement(label, event)
        rows = NEW_ROWS if event.has_new else OLD_ROWS
        unchanged = ""
        if event is Event.UPDATE:
            used = faces[label].compared
            unchanged = f"""
  IF NOT EXISTS (SELECT {used} FROM {NEW_ROWS} EXCEPT ALL SELECT {used} FROM {OLD_ROWS}) THEN
    RETURN NULL;
  END IF;"""
        body = f"""DECLARE
  opened int := {self._flags.opened};
  missing bigint;
BEGIN
  IF opened > 1 OR {self._flags.waiting} <> '' THEN
    INSERT INTO {ours(self.pending(label))} {_waiting_rows(faces[label])};
    PERFORM set_config({self._flags.open}, (opened - 1)::text, true);
    IF opened > 1 THEN
      PERFORM set_config({self._flags.wait}, coalesce(nullif({self._flags.waiting}, ''), 'changes'), true);
    ELSE
      PERFORM {ours(f"settle_{self.number}")}();
    END IF;
    RETURN NULL;
  END IF;
  PERFORM set_config({self._flags.open}, '0', true);
  IF NOT EXISTS (SELECT FROM {rows}) THEN
    RETURN NULL;
  END IF;{unchanged}
{self._locks(faces)}  IF {_exceeds([rows])} THEN
    EXECUTE {literal(text)} INTO missing;
  ELSE
    {text} INTO missing;
  END IF;
{self._check()}  RETURN NULL;
END"""
        return Function(self.after_name(label, event), "trigger", body)

    def statement(self, label: str, event: Event) -> str:
        """What brings the stream table up to a statement of one kind on one source."""
        faces = self._faces({label: event})
        return statement(Change(self.compiled.stores, faces, frozenset((label,)), self.compiled.certain))

    def after_name(self, label: str, event: Event) -> str:
        """The name of a function."""
        return f"{event}_{self.number}_{self.place(label)}"

    def settle(self) -> Function:
        """What is done when several changes have come together."""
        labels = list(self.compiled.tables)
        faces = self._faces(dict.fromkeys(labels, Event.PENDING))
        text = statement(Change(self.compiled.stores, faces, frozenset(labels), self.compiled.certain))
        waiting = [ours(self.pending(label)) for label in labels]
        emptied = "".join(f"  DELETE FROM {ours(self.pending(label))};\n" for label in labels)
        body = f"""DECLARE
  missing bigint;
  what text := {self._flags.waiting};
BEGIN
  PERFORM set_config({self._flags.wait}, '', true);
  IF what = 'rebuild' THEN
{_indented(emptied)}    PERFORM {ours(f"rebuild_{self.number}")}();
    RETURN;
  END IF;
{self._locks(faces)}  IF {_exceeds(waiting)} THEN
    EXECUTE {literal(text)} INTO missing;
  ELSE
    {text} INTO missing;
  END IF;
{emptied}{self._check()}END"""
        return Function(f"settle_{self.number}", "void", body)

    def rebuild(self) -> Function:
        """What computes everything anew."""
        lines = "".join(f"  DELETE FROM {store.table};\n  {fill};\n" for store, fill in self.fills())
        return Function(f"rebuild_{self.number}", "void", f"BEGIN\n{lines}END")

    def fills(self) -> Iterator[tuple[Store, str]]:
        """For each stage, what fills its table."""
        for store in self.compiled.stores:
            columns = ", ".join(map(store.real, store.columns))
            yield store, f"INSERT INTO {store.table} ({columns}) {self._whole(store)}"

    def _whole(self, store: Store) -> str:
        leaves = ", ".join(
            f"{identifier(label)} AS NOT MATERIALIZED (SELECT * FROM {table.sql})"
            for label, table in self.compiled.tables.items()
        )
        tree = typed_nulls(store.whole, store.types)
        return f"WITH {leaves} {_nested(lower(tree, _label, 'postgres_own'))}"

    @property
    def _flags(self) -> _Flags:
        return _Flags(self.number)

    def _faces(self, events: Mapping[str, Event]) -> dict[str, SourceFaces]:
        return {
            label: SourceFaces(
                table, self.compiled.used(label), events.get(label, Event.INSERT), ours(self.pending(label))
            )
            for label, table in self.compiled.tables.items()
        }

    def _locks(self, faces: Mapping[str, SourceFaces]) -> str:
        if self._buckets is None:
            return ""
        (label,) = faces
        (store,) = self.compiled.stores
        change = f"{identifier(label)} AS NOT MATERIALIZED ({faces[label].change})"
        found = _nested(lower(typed_nulls(self._buckets, store.types), _label, "postgres_own"))
        keys = f"SELECT {identifier(BUCKET)}::int + {bucket_base(self.number)} AS k FROM ({found}) AS b ORDER BY k"
        return f"  PERFORM pg_advisory_xact_lock({LOCK_CLASS}, l.k) FROM (WITH {change} {keys}) AS l;\n"

    def _check(self) -> str:
        return f"""  IF missing <> 0 THEN
    RAISE EXCEPTION 'stream table % does not hold rows that go', {literal(self.name)}
      USING ERRCODE = 'data_corrupted', DETAIL = missing || ' rows are missing', HINT = 'rebuild it';
  END IF;
"""


def guard() -> Function:
    """What keeps others from writing to the tables of stream tables."""
    body = """BEGIN
  IF pg_trigger_depth() < 2 AND coalesce(current_setting('trickle.rebuild', true), '') = '' THEN
    RAISE EXCEPTION '%.% is kept by its query', TG_TABLE_SCHEMA, TG_TABLE_NAME
      USING ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'change what it reads; it follows in the same transaction';
  END IF;
  RETURN NULL;
END"""
    return Function("guard", "trigger", body)


def _refuse_isolation(name: str) -> str:
    """A transaction with one snapshot for all its statements does not see the rows that others gave a stream table."""
    return f"""  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'stream table % is kept in the transaction that changes its sources', {literal(name)}
      USING ERRCODE = 'feature_not_supported', HINT = 'use READ COMMITTED',
        DETAIL = format('the transaction is %s, and would not see what others committed meanwhile',
                        current_setting('transaction_isolation'));
  END IF;
"""


def _lock(family: int) -> str:
    return f"PERFORM pg_advisory_xact_lock({LOCK_CLASS}, {lock_number(family)});"


def _label(leaf: Scan | Step) -> str:
    assert isinstance(leaf, Scan)
    return leaf.table


def _nested(query: str) -> str:
    return f"SELECT * FROM ({query}) AS q"


def _exceeds(relations: Sequence[str]) -> str:
    """Whether one of some relations has many rows."""
    counted = (f"(SELECT count(*) FROM (SELECT FROM {rows} LIMIT {MANY + 1}) AS r)" for rows in relations)
    return f"greatest({', '.join(counted)}) > {MANY}"


def _waiting_rows(faces: SourceFaces) -> str:
    columns = ", ".join(map(identifier, (*faces.columns, WEIGHT)))
    return f"({columns}) SELECT {columns} FROM ({faces.change}) AS c"


def _indented(lines: str) -> str:
    return "".join(f"  {line}\n" for line in lines.splitlines())
