from __future__ import annotations

import pytest
from psycopg import sql

from trickle.errors import UnknownTable
from trickle.postgres.connect import Connection
from trickle.postgres.tables import Identity, Relkind, describe, describe_oids, listing

HOSTILE = 'Mi"x.ed "; DROP ßλ ' + "x" * 30


def test_a_plain_table(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE public.t (id bigint PRIMARY KEY, a numeric(5,1), b text NOT NULL,"
        " c int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    table = describe(connection, "public", "t")
    assert (table.kind, table.identity, table.key, table.identity_columns) == (
        Relkind.TABLE,
        Identity.DEFAULT,
        ("id",),
        ("id",),
    )
    assert [(c.name, c.attnum, c.type_text, c.not_null, c.generated) for c in table.columns] == [
        ("id", 1, "bigint", True, ""),
        ("a", 2, "numeric(5,1)", False, ""),
        ("b", 3, "text", True, ""),
        ("c", 4, "integer", False, "s"),
    ]
    assert [part.oid for part in table.parts] == [table.oid]
    assert not table.unlogged


def test_names_are_exact(connection: Connection) -> None:
    connection.execute(
        sql.SQL("CREATE TABLE public.{} ({} int)").format(sql.Identifier(HOSTILE), sql.Identifier("a b"))
    )
    table = describe(connection, "public", HOSTILE)
    assert table.columns[0].name == "a b"
    connection.execute(sql.SQL("SELECT {} FROM {}").format(sql.Identifier("a b"), table.quoted))
    with pytest.raises(UnknownTable, match="no table"):
        describe(connection, "public", HOSTILE.lower())


def test_a_key_is_the_primary_one_or_a_unique_index_without_nulls(connection: Connection) -> None:
    connection.execute("CREATE TABLE public.t (a int NOT NULL, b int NOT NULL, c int)")
    assert describe(connection, "public", "t").key == ()
    connection.execute("CREATE UNIQUE INDEX ON public.t (c)")
    connection.execute("CREATE UNIQUE INDEX ON public.t (a) WHERE b > 0")
    connection.execute("CREATE UNIQUE INDEX ON public.t ((a + 1))")
    assert describe(connection, "public", "t").key == ()
    connection.execute("CREATE UNIQUE INDEX by_ba ON public.t (b, a) INCLUDE (c)")
    assert describe(connection, "public", "t").key == ("b", "a")
    assert describe(connection, "public", "t").identity_columns == ()
    connection.execute("ALTER TABLE public.t REPLICA IDENTITY USING INDEX by_ba")
    assert describe(connection, "public", "t").identity_columns == ("b", "a")


def test_parts_are_the_tables_that_hold_rows(connection: Connection) -> None:
    connection.execute("CREATE TABLE public.p (id int, day date) PARTITION BY RANGE (day)")
    connection.execute(
        "CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"
        " PARTITION BY LIST (id)"
    )
    connection.execute("CREATE TABLE public.p1a PARTITION OF public.p1 DEFAULT")
    connection.execute("CREATE TABLE public.p2 PARTITION OF public.p DEFAULT")
    table = describe(connection, "public", "p")
    assert table.kind is Relkind.PARTITIONED
    assert {part.name for part in table.parts} == {"p1a", "p2"}
    connection.execute("CREATE TABLE public.old (id int)")
    connection.execute("CREATE TABLE public.older (more text) INHERITS (public.old)")
    assert {part.name for part in describe(connection, "public", "old").parts} == {"old", "older"}
    assert [table.name for table in listing(connection, "public")] == ["old", "older", "p"]


def test_a_renamed_table_is_found_by_its_oid(connection: Connection) -> None:
    connection.execute("CREATE UNLOGGED TABLE public.t (a int)")
    oid = describe(connection, "public", "t").oid
    connection.execute("CREATE SCHEMA s; ALTER TABLE public.t SET SCHEMA s; ALTER TABLE s.t RENAME TO u")
    found = describe_oids(connection, [oid, 1])
    assert found[oid].shown == "s.u"
    assert found[oid].unlogged
    connection.execute("DROP TABLE s.u")
    assert describe_oids(connection, [oid]) == {}
    assert describe_oids(connection, []) == {}
