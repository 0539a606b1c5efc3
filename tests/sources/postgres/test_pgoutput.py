"""The decoder against an encoder that was written from the protocol's description, broken bytes, and a real server."""

from __future__ import annotations

from typing import get_args

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.postgres.small_lake import SmallLake
from trickle.errors import InternalError
from trickle.sources.postgres import slots
from trickle.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    Message,
    Origin,
    Relation,
    Row,
    Truncate,
    Type,
    Update,
    decode,
)
from trickle.sources.postgres.positions import WalPosition


def encode(message: Message) -> bytes:
    match message:
        case Begin(lsn, at, xid):
            return b"B" + lsn.to_bytes(8) + at.to_bytes(8, signed=True) + xid.to_bytes(4)
        case Commit(lsn, end_lsn, at):
            return b"C\0" + lsn.to_bytes(8) + end_lsn.to_bytes(8) + at.to_bytes(8, signed=True)
        case Origin(lsn, name):
            return b"O" + lsn.to_bytes(8) + name + b"\0"
        case Relation(oid, schema, name, identity, columns):
            head = b"R" + oid.to_bytes(4) + schema + b"\0" + name + b"\0" + identity.encode()
            return head + len(columns).to_bytes(2) + b"".join(map(encode_column, columns))
        case Type(oid, schema, name):
            return b"Y" + oid.to_bytes(4) + schema + b"\0" + name + b"\0"
        case Insert(relation, new):
            return b"I" + relation.to_bytes(4) + b"N" + encode_row(new)
        case Update(relation, old, is_key, new):
            before = b"" if old is None else (b"K" if is_key else b"O") + encode_row(old)
            return b"U" + relation.to_bytes(4) + before + b"N" + encode_row(new)
        case Delete(relation, old, is_key):
            return b"D" + relation.to_bytes(4) + (b"K" if is_key else b"O") + encode_row(old)
        case Truncate(relations, cascade, restart):
            oids = b"".join(oid.to_bytes(4) for oid in relations)
            return b"T" + len(relations).to_bytes(4) + bytes([cascade + 2 * restart]) + oids


def encode_column(column: Column) -> bytes:
    is_key, name, type_oid, typmod = column
    return bytes([is_key]) + name + b"\0" + type_oid.to_bytes(4) + typmod.to_bytes(4, signed=True)


def encode_row(row: Row) -> bytes:
    def value(one: object) -> bytes:
        if isinstance(one, bytes):
            return b"t" + len(one).to_bytes(4) + one
        return b"n" if one is None else b"u"

    return len(row).to_bytes(2) + b"".join(map(value, row))


lsns = st.integers(0, 2**64 - 1)
oids = st.integers(0, 2**32 - 1)
times = st.integers(-(2**63), 2**63 - 1)
names = st.binary(max_size=70).filter(lambda name: b"\0" not in name)
rows = st.lists(st.one_of(st.binary(max_size=300), st.none(), st.just(UNCHANGED)), max_size=12).map(tuple)
columns = st.builds(Column, st.booleans(), names, oids, st.integers(-(2**31), 2**31 - 1))

messages = st.one_of(
    st.builds(Begin, lsns, times, oids),
    st.builds(Commit, lsns, lsns, times),
    st.builds(Origin, lsns, names),
    st.builds(Relation, oids, names, names, st.sampled_from("dnfi"), st.lists(columns, max_size=6).map(tuple)),
    st.builds(Type, oids, names, names),
    st.builds(Insert, oids, rows),
    st.builds(Update, oids, rows, st.booleans(), rows),
    st.builds(Update, oids, st.none(), st.just(False), rows),
    st.builds(Delete, oids, rows, st.booleans()),
    st.builds(Truncate, st.lists(oids, max_size=5).map(tuple), st.booleans(), st.booleans()),
)


@given(messages)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    assert decode(encode(message)) == message


@given(messages, st.data())
def test_a_message_that_is_cut_off_is_never_taken_for_a_whole_one(message: Message, data: st.DataObject) -> None:
    whole = encode(message)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InternalError, match="cannot be read"):
        decode(part)


@given(messages, st.binary(min_size=1, max_size=5))
def test_a_message_with_something_behind_it_is_refused(message: Message, more: bytes) -> None:
    with pytest.raises(InternalError, match="cannot be read"):
        decode(encode(message) + more)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_message_or_our_own_error(data: bytes) -> None:
    try:
        message = decode(data)
    except InternalError:
        return
    # A commit's flags are not kept, a truncation has flags without a meaning, and any but 0 counts as a key.
    if not isinstance(message, Commit | Truncate | Relation):
        assert encode(message) == data


@pytest.mark.parametrize("letter", [b"S", b"E", b"c", b"M", b"A", b"P", b"X", b"\0"])
def test_messages_of_other_protocol_versions_are_refused_by_name(letter: bytes) -> None:
    with pytest.raises(InternalError) as caught:
        decode(letter + bytes(20))
    assert repr(letter) in (caught.value.detail or "")
    assert "protocol version 1" in (caught.value.hint or "")


def test_a_row_mark_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(InternalError, match="cannot be read"):
        decode(b"I" + bytes(4) + b"K" + encode_row((b"1",)))
    with pytest.raises(InternalError, match="cannot be read"):
        decode(b"D" + bytes(4) + b"N" + encode_row((b"1",)))


def test_a_value_in_binary_form_was_not_asked_for_and_is_refused() -> None:
    with pytest.raises(InternalError) as caught:
        decode(b"I" + bytes(4) + b"N\0\1" + b"b\0\0\0\1x")
    assert "unknown kind: 0x62" in (caught.value.detail or "")


def test_a_real_server_sends_what_the_encoder_writes(lake: SmallLake, user: psycopg.Connection) -> None:
    """Every kind of message, to the last byte."""
    user.execute("CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    user.execute("CREATE TABLE t (id int PRIMARY KEY, m mood, d positive, v varchar(10), big text)")
    user.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    user.execute("CREATE TABLE u (a text); ALTER TABLE u REPLICA IDENTITY FULL")
    lake.attach("t")
    lake.attach("u")
    user.execute("SELECT pg_replication_origin_create('elsewhere'), pg_replication_origin_session_setup('elsewhere')")
    try:
        with user.transaction():
            user.execute("SELECT pg_replication_origin_xact_setup('1/2', now())")
            user.execute("INSERT INTO t VALUES (1, 'good', 5, 'é', repeat('x', 5000)), (2, NULL, NULL, '', '')")
    finally:
        user.execute("SELECT pg_replication_origin_session_reset(), pg_replication_origin_drop('elsewhere')")
    for statement in (
        "UPDATE t SET m = 'bad' WHERE id = 1",
        "UPDATE t SET id = 3 WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO u VALUES (NULL)",
        "UPDATE u SET a = 'x'",
        "DELETE FROM u",
        "TRUNCATE t, u RESTART IDENTITY CASCADE",
    ):
        user.execute(statement)
    upto = WalPosition.parse(lake.capture.position()).lsn
    sent = list(slots.peek(lake.connection, lake.name, upto))
    found = [decode(data) for data in sent]
    assert [encode(message) for message in found] == sent
    assert {type(message) for message in found} == set(get_args(Message))
    (truncate,) = [message for message in found if isinstance(message, Truncate)]
    assert (len(truncate.relations), truncate.cascade, truncate.restart_identity) == (2, True, True)
    (origin,) = [message for message in found if isinstance(message, Origin)]
    assert origin == Origin(2**32 + 2, b"elsewhere")
