"""Random transactions through the collector, against a table that is simply kept; no server is needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.postgres.small_lake import apply
from tests.sources.postgres.test_pgoutput import encode
from trickle.postgres.tables import Identity, Part, Relkind, SourceColumn, SourceTable
from trickle.postgres.types import PgType
from trickle.sources.postgres import replay
from trickle.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Row,
    Truncate,
    Update,
)
from trickle.sources.postgres.positions import Snapshot, WalPosition
from trickle.sources.postgres.replay import TableLog, collect

INT, TEXT = PgType(23, "int4"), PgType(25, "text")
OID = 7


def column(name: str, number: int, kind: PgType) -> SourceColumn:
    return SourceColumn(name, number, kind.oid, kind.name, -1, not_null=number == 1, generated="", type=kind)


COLUMNS = (column("id", 1, INT), column("small", 2, TEXT), column("big", 3, TEXT))
TABLE = SourceTable(
    OID, "public", "t", Relkind.TABLE, COLUMNS, ("id",), Identity.DEFAULT, (Part(OID, "public", "t"),), ("id",)
)

Stored = tuple[int, str | None, str]


@dataclass
class Server:
    """A table with a primary key, and what its server would send."""

    identity: str
    rows: dict[int, Stored] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    lsn: int = 100
    xid: int = 10
    history: list[tuple[int, Counter[Stored]]] = field(default_factory=list)
    """The contents after each commit, with the LSN that the next record has."""

    def run(self, transactions: list[list[tuple[str, int, int, str | None, bool]]]) -> None:
        self.history.append((self.lsn, Counter(self.rows.values())))
        for transaction in transactions:
            self.xid += 1
            self.sent += [Begin(self.lsn, 0, self.xid), self.relation()]
            for action in transaction:
                self.act(*action)
            self.sent.append(Commit(self.lsn, self.lsn + 10, 0))
            self.lsn += 10
            self.history.append((self.lsn, Counter(self.rows.values())))

    def relation(self) -> Relation:
        is_full = self.identity == "f"
        columns = tuple(Column(is_full or c.name == "id", c.name.encode(), c.type_oid, -1) for c in COLUMNS)
        return Relation(OID, b"public", b"t", self.identity, columns)

    def act(self, action: str, one: int, other: int, small: str | None, keep: bool) -> None:
        if action == "insert" and one not in self.rows:
            self.rows[one] = (one, small, f"big {self.xid}")
            self.sent.append(Insert(OID, wire(self.rows[one])))
        elif action == "update" and one in self.rows and (other == one or other not in self.rows):
            old = self.rows.pop(one)
            new = (other, small, old[2] if keep else f"big {self.xid}")
            self.rows[other] = new
            row = wire(new)
            self.sent.append(self.update(old, (*row[:2], UNCHANGED) if keep else row, other != one))
        elif action == "delete" and one in self.rows:
            old = self.rows.pop(one)
            is_key = self.identity == "d"
            self.sent.append(Delete(OID, key(old) if is_key else wire(old), is_key))
        elif action == "truncate":
            self.rows.clear()
            self.sent.append(Truncate((OID,), cascade=False, restart_identity=False))
        elif action == "identity":
            self.identity = "f" if self.identity == "d" else "d"
            self.sent.append(self.relation())

    def update(self, old: Stored, new: Row, is_new_key: bool) -> Update:
        if self.identity == "f":
            return Update(OID, wire(old), False, new)
        return Update(OID, key(old) if is_new_key else None, is_new_key, new)


def wire(row: Stored) -> Row:
    return tuple(None if value is None else str(value).encode() for value in row)


def key(row: Stored) -> Row:
    return (str(row[0]).encode(), None, None)


keys = st.integers(1, 4)
actions = st.tuples(
    st.sampled_from(["insert", "insert", "update", "update", "delete", "truncate"]),
    keys,
    keys,
    st.sampled_from([None, "a", "b"]),
    st.booleans(),
)
mixed = st.tuples(
    st.sampled_from(["insert", "update", "delete", "identity"]), keys, keys, st.sampled_from([None, "a"]), st.booleans()
)


def play(server: Server, stops: list[int]) -> None:
    """Ingest at some of the commits. The replica equals the table as it was at each."""
    stream = [encode(message) for message in server.sent]
    begin, contents = server.history[0]
    replica = Counter(dict(contents))
    position = WalPosition(begin)
    for stop in sorted({*(stop % len(server.history) for stop in stops), len(server.history) - 1}):
        upto, expected = server.history[stop]
        for _, changes in collect(stream, {OID: TableLog(TABLE, position)}, WalPosition(upto)):
            assert changes.schema_changed is None
            apply(replica, changes)
        assert +replica == expected
        position = position.moved(WalPosition(upto))


@given(
    st.sampled_from("df"),
    st.lists(st.lists(actions, max_size=4), max_size=3),
    st.lists(st.lists(actions, max_size=6), max_size=6),
    st.lists(st.integers(0, 10), max_size=4),
)
@settings(max_examples=300)
def test_replicas_follow_whatever_the_positions_are(identity, before, transactions, stops) -> None:
    server = Server(identity)
    server.run(before)
    server.history, server.sent = [], server.sent
    server.run(transactions)
    play(server, stops)


@given(st.lists(st.lists(mixed, max_size=8), max_size=5), st.lists(st.integers(0, 10), max_size=3))
@settings(max_examples=200)
def test_whole_rows_and_keys_may_alternate(transactions, stops) -> None:
    server = Server("f")
    server.run(transactions)
    play(server, stops)


@given(st.lists(st.lists(mixed, max_size=8), min_size=1, max_size=5))
def test_pieces_that_were_put_away_are_told_again(transactions) -> None:
    server = Server("f")
    server.run(transactions)
    size = replay.PIECE_BYTES
    try:
        replay.PIECE_BYTES = 40
        play(server, [])
    finally:
        replay.PIECE_BYTES = size


@given(st.lists(st.lists(actions, max_size=4), min_size=1, max_size=6), st.data())
def test_what_the_snapshot_of_a_load_saw_is_left_out(transactions, data) -> None:
    """A snapshot sees any of the transactions, not only the first ones: here all up to one, and none of the others."""
    server = Server("f")
    server.run(transactions)
    seen = data.draw(st.integers(0, len(transactions)))
    snapshot = Snapshot(11 + seen, 11 + seen)
    replica = Counter(dict(server.history[seen][1]))
    position = WalPosition(server.history[0][0], snapshot, until=server.lsn)
    stream = [encode(message) for message in server.sent]
    for upto, expected in server.history:
        for _, changes in collect(stream, {OID: TableLog(TABLE, position)}, WalPosition(upto)):
            apply(replica, changes)
        position = position.moved(WalPosition(upto))
        assert +replica == (expected if upto > server.history[seen][0] else server.history[seen][1])


def test_a_row_that_contradicts_the_book_is_doubted() -> None:
    server = Server("d")
    server.run([[("insert", 1, 1, "a", False)], [("delete", 1, 1, None, False)]])
    twice = [encode(message) for message in [*server.sent[:4], *server.sent[4:], *server.sent[4:]]]
    ((_, changes),) = collect(twice, {OID: TableLog(TABLE, WalPosition(0))}, WalPosition(1000))
    # The same deletion again: the row is unknown, so it is taken for one that the replica has.
    assert changes.by_key
    thrice = twice + [encode(message) for message in server.sent[4:]]
    ((_, changes),) = collect(thrice, {OID: TableLog(TABLE, WalPosition(0))}, WalPosition(1000))
    assert changes.schema_changed == "a row with the key 1 is gone and changes again"
    assert changes.rows.num_rows == 0


def test_a_row_that_goes_from_an_emptied_table_is_doubted() -> None:
    server = Server("d")
    server.run([[("truncate", 1, 1, None, False)]])
    gone = Delete(OID, (b"1", None, None), is_key=True)
    stream = [encode(message) for message in [*server.sent[:-1], gone, server.sent[-1]]]
    ((_, changes),) = collect(stream, {OID: TableLog(TABLE, WalPosition(0))}, WalPosition(1000))
    assert changes.schema_changed == "a row with the key 1 is gone and changes again"


def test_rows_of_tables_that_nobody_asked_for_are_passed_over() -> None:
    server = Server("d")
    server.run([[("insert", 1, 1, "a", False)]])
    other = replace(TABLE, oid=8, parts=(Part(8, "public", "other"),))
    stream = [encode(message) for message in server.sent]
    assert list(collect(stream, {8: TableLog(other, WalPosition(0))}, WalPosition(1000))) == []
