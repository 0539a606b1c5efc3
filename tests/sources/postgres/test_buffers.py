from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from tests.postgres import Postgres
from tests.sources.postgres.given import OWN, Followed, session
from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import describe
from trickle.sources.postgres.buffers import TriggerCapture, armed_oids
from trickle.sources.postgres.capture import Bound, State
from trickle.sources.postgres.triggers import Style, buffer_name

STYLES = [OWN, replace(OWN, row_level=True), replace(OWN, unlogged=True)]
HOSTILE = 'Mi"x.ed \'"; DROP ßλ $$ {0} %s ' + "x" * 20


@pytest.fixture(params=STYLES, ids=["statement", "row", "unlogged"])
def style(request: pytest.FixtureRequest) -> Style:
    found: Style = request.param
    return found


def keyed(connection: Connection) -> None:
    connection.execute("CREATE TABLE public.t (id bigint PRIMARY KEY, name text, price numeric(10,2))")
    connection.execute("INSERT INTO public.t SELECT g, 'n' || g, g / 2.0 FROM generate_series(1, 20) g")


def test_insert_update_delete(connection: Connection, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    connection.execute("INSERT INTO public.t SELECT g, 'n' || g, NULL FROM generate_series(21, 30) g")
    connection.execute("UPDATE public.t SET price = price + 1 WHERE id <= 10")
    connection.execute("DELETE FROM public.t WHERE id % 7 = 0")
    connection.execute("UPDATE public.t SET id = id + 100 WHERE id BETWEEN 11 AND 15")
    connection.execute(
        "MERGE INTO public.t USING (VALUES (1), (500)) v (k) ON id = k"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, 'm', 1)"
    )
    connection.execute(
        "INSERT INTO public.t VALUES (2, 'upsert', 0), (600, 'new', 0)"
        " ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
    )
    with connection.cursor() as cursor, cursor.copy("COPY public.t FROM STDIN") as copy:
        copy.write_row((700, "copied", None))
    followed.ingest()
    assert followed.rows == followed.source()
    assert followed.ingest() is None
    assert followed.buffered() == 0


def test_a_transaction_that_commits_late_is_not_skipped(connection: Connection, dsn: str, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    with session(dsn) as long, session(dsn) as short:
        long.execute("INSERT INTO public.t VALUES (100, 'long', 1)")
        short.execute("INSERT INTO public.t VALUES (101, 'short', 1)")
        short.commit()
        followed.ingest()
        assert followed.rows == followed.source()
        assert (101, "short", 1) in followed.rows
        between = followed.capture.position()
        long.execute("UPDATE public.t SET name = 'longer' WHERE id = 100")
        long.commit()
        followed.ingest(upto=between)
        assert (100, "longer", 1) not in followed.rows
        followed.ingest()
    assert followed.rows == followed.source()
    assert (100, "longer", 1) in followed.rows


def test_what_is_rolled_back_never_happened(connection: Connection, dsn: str, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    with session(dsn) as other:
        other.execute("DELETE FROM public.t")
        other.rollback()
        other.execute("INSERT INTO public.t VALUES (100, 'kept', 1)")
        other.execute("SAVEPOINT s")
        other.execute("DELETE FROM public.t WHERE id > 5")
        other.execute("ROLLBACK TO s")
        other.execute("UPDATE public.t SET name = 'after' WHERE id = 1")
        other.commit()
    changes = followed.ingest()
    assert followed.rows == followed.source()
    assert changes is not None
    assert changes.rows.num_rows == 3


def test_truncate_and_what_follows_it(connection: Connection, dsn: str, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    with session(dsn) as other:
        other.execute("INSERT INTO public.t VALUES (100, 'before', 1)")
        other.execute("TRUNCATE public.t")
        other.execute("INSERT INTO public.t VALUES (1, 'after', 1)")
        other.commit()
        other.execute("UPDATE public.t SET price = 2")
        other.commit()
    changes = followed.ingest()
    assert changes is not None
    assert changes.truncated
    assert followed.rows == followed.source() == {(1, "after", 2): 1}
    connection.execute("TRUNCATE public.t")
    followed.ingest()
    assert followed.rows == followed.source() == {}


@pytest.mark.parametrize("statement", ["TRUNCATE public.eu", "TRUNCATE public.p", "TRUNCATE public.rest_1"])
def test_a_truncate_of_a_partition_leaves_the_rows_of_the_others(
    connection: Connection, style: Style, statement: str
) -> None:
    connection.execute("CREATE TABLE public.p (id int, region text) PARTITION BY LIST (region)")
    connection.execute("CREATE TABLE public.eu PARTITION OF public.p FOR VALUES IN ('eu')")
    connection.execute("CREATE TABLE public.rest PARTITION OF public.p DEFAULT PARTITION BY LIST (id)")
    connection.execute("CREATE TABLE public.rest_1 PARTITION OF public.rest DEFAULT")
    connection.execute("INSERT INTO public.p VALUES (1, 'eu'), (2, 'us')")
    followed = Followed(connection, "p", style=style)
    assert followed.capture.trouble(followed.table) is None
    connection.execute(statement)
    connection.execute("INSERT INTO public.p VALUES (3, 'eu')")
    assert lost(followed) == "it has several parts, and some or all of them were truncated"


@pytest.mark.parametrize("statement", ["TRUNCATE ONLY public.a", "TRUNCATE public.b"])
def test_so_does_one_of_a_table_that_others_inherit_from(connection: Connection, style: Style, statement: str) -> None:
    connection.execute("CREATE TABLE public.a (id int); CREATE TABLE public.b () INHERITS (public.a)")
    connection.execute("INSERT INTO public.a VALUES (1); INSERT INTO public.b VALUES (2)")
    followed = Followed(connection, "a", style=style)
    connection.execute(statement)
    assert "truncated" in lost(followed)


def test_rows_without_a_key_are_counted(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.t (a int, b point)")
    connection.execute("INSERT INTO public.t SELECT g % 3, '(1,1)' FROM generate_series(1, 9) g")
    followed = Followed(connection, "t", style=style)
    connection.execute("DELETE FROM public.t WHERE ctid IN (SELECT min(ctid) FROM public.t GROUP BY a)")
    connection.execute("UPDATE public.t SET b = '(2,2)' WHERE ctid = (SELECT max(ctid) FROM public.t)")
    connection.execute("INSERT INTO public.t VALUES (NULL, NULL), (NULL, NULL), (0, '(1,1)')")
    followed.ingest()
    assert followed.rows == followed.source()
    assert followed.rows[None, None] == 2


def test_updates_that_change_nothing_used_are_left_out(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.t (id int PRIMARY KEY, used text, spare text, span interval)")
    connection.execute("INSERT INTO public.t VALUES (1, 'a', 'x', '1 day'), (2, 'b', 'y', '1 day')")
    table = describe(connection, "public", "t").with_columns(["id", "used", "span"])
    capture = TriggerCapture(connection, style)
    capture.arm(table)
    start = capture.position()
    connection.execute("UPDATE public.t SET spare = spare || '!', used = used")
    assert list(capture.changes([table], {table.oid: start}, capture.position())) == []
    connection.execute("UPDATE public.t SET span = '24:00:00' WHERE id = 1")
    ((_, changes),) = capture.changes([table], {table.oid: start}, capture.position())
    assert [row["span"] for row in changes.rows.to_pylist()] == ["P1D", "PT24H"]
    masks = connection.execute(sql.SQL("SELECT DISTINCT changed::text FROM {}").format(buffer_name(style, table.oid)))
    assert ("001",) in list(masks)


def test_hostile_names(connection: Connection, style: Style) -> None:
    schema, name, column = HOSTILE[:60], HOSTILE[1:50], HOSTILE[2:40]
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    table = sql.Identifier(schema, name)
    statement = sql.SQL("CREATE TABLE {} ({} text PRIMARY KEY, op int, seq int, c0 int, statement int)")
    connection.execute(statement.format(table, sql.Identifier(column)))
    followed = Followed(connection, name, schema, style)
    connection.execute(sql.SQL("INSERT INTO {} VALUES ('{{}}%', 1, 2, 3, 4), ('b', 5, 6, 7, 8)").format(table))
    connection.execute(sql.SQL("UPDATE {} SET seq = 9").format(table))
    followed.ingest()
    assert followed.rows == followed.source() == {("{}%", 1, 9, 3, 4): 1, ("b", 5, 9, 7, 8): 1}


def test_generated_columns(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.t (a int PRIMARY KEY, s int GENERATED ALWAYS AS (a * 2) STORED)")
    followed = Followed(connection, "t", style=style)
    connection.execute("INSERT INTO public.t (a) VALUES (1), (2), (3)")
    connection.execute("UPDATE public.t SET a = a + 10 WHERE a > 1")
    connection.execute("DELETE FROM public.t WHERE a = 12")
    followed.ingest()
    assert followed.rows == followed.source()


def test_partitions_by_whatever_name_they_are_written(connection: Connection, style: Style) -> None:
    connection.execute(
        "CREATE TABLE public.p (id int, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)"
    )
    connection.execute("CREATE TABLE public.eu PARTITION OF public.p FOR VALUES IN ('eu')")
    # Another order of columns than its parent's, and a dropped one.
    connection.execute(
        "CREATE TABLE public.us (gone int, region text NOT NULL, id int NOT NULL, PRIMARY KEY (id, region))"
    )
    connection.execute("ALTER TABLE public.us DROP COLUMN gone")
    connection.execute("ALTER TABLE public.p ATTACH PARTITION public.us FOR VALUES IN ('us')")
    followed = Followed(connection, "p", style=style)
    connection.execute("INSERT INTO public.p VALUES (1, 'eu'), (2, 'us'), (3, 'us')")
    connection.execute("INSERT INTO public.us (id, region) VALUES (4, 'us')")
    connection.execute("UPDATE public.p SET region = 'us' WHERE id = 1")
    connection.execute("UPDATE public.us SET id = 20 WHERE id = 2")
    connection.execute("DELETE FROM public.p WHERE id = 3")
    followed.ingest()
    assert followed.rows == followed.source() == {(1, "us"): 1, (20, "us"): 1, (4, "us"): 1}


def test_a_partition_that_came_and_went_leaves_no_rows_behind(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.p (id int, day int) PARTITION BY RANGE (day)")
    connection.execute(
        "CREATE TABLE public.p_1 PARTITION OF public.p FOR VALUES FROM (0) TO (10) PARTITION BY LIST (id)"
    )
    connection.execute("CREATE TABLE public.p_1_1 PARTITION OF public.p_1 FOR VALUES IN (1)")
    followed = Followed(connection, "p", style=style)
    connection.execute("INSERT INTO public.p VALUES (1, 1); INSERT INTO public.p_1 VALUES (1, 2)")
    followed.ingest()
    assert followed.rows == followed.source()
    connection.execute("CREATE TABLE public.p_1_2 PARTITION OF public.p_1 FOR VALUES IN (2)")
    connection.execute("INSERT INTO public.p VALUES (2, 2); DROP TABLE public.p_1_2")
    assert "its parts were changed" in lost(followed)


def test_nor_does_a_table_that_inherited_for_a_while(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.a (id int); INSERT INTO public.a VALUES (1)")
    followed = Followed(connection, "a", style=style)
    connection.execute("CREATE TABLE public.b () INHERITS (public.a); INSERT INTO public.b VALUES (2)")
    connection.execute("UPDATE public.a SET id = id + 10 WHERE id = 2; DROP TABLE public.b")
    if style.row_level:
        followed.ingest()
        assert followed.rows == followed.source()
    else:
        assert "its parts were changed" in lost(followed)


def test_inheriting_tables(connection: Connection) -> None:
    connection.execute("CREATE TABLE public.a (id int); CREATE TABLE public.b (more text) INHERITS (public.a)")
    followed = Followed(connection, "a")
    connection.execute("INSERT INTO public.a VALUES (1); INSERT INTO public.b VALUES (2, 'x'), (3, 'y')")
    connection.execute("UPDATE public.a SET id = id + 10; DELETE FROM public.b WHERE id = 12")
    followed.ingest()
    assert followed.rows == followed.source() == {(11,): 1, (13,): 1}


def test_writers_need_no_rights(postgres: Postgres, connection: Connection, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    connection.execute("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk; GRANT USAGE ON SCHEMA public TO clerk")
    connection.execute("GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON public.t TO clerk")
    connection.execute("SET ROLE clerk")
    connection.execute("INSERT INTO public.t VALUES (100, 'clerk', 1)")
    connection.execute("UPDATE public.t SET name = 'c' WHERE id = 1")
    connection.execute("DELETE FROM public.t WHERE id = 2")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM trickle_capture.nothing")
    connection.execute("RESET ROLE")
    followed.ingest()
    assert followed.rows == followed.source()
    connection.execute("DROP OWNED BY clerk; DROP ROLE clerk")


def test_a_search_path_of_the_writer_changes_nothing(connection: Connection) -> None:
    keyed(connection)
    followed = Followed(connection, "t")
    connection.execute(
        "CREATE SCHEMA evil; CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1/0'"
    )
    connection.execute("SET search_path = evil, pg_catalog")
    connection.execute("INSERT INTO public.t VALUES (100, 'x', 1)")
    connection.execute("SET search_path = pg_catalog, pg_temp")
    followed.ingest()
    assert followed.rows == followed.source()


def test_wide_tables(connection: Connection, style: Style) -> None:
    names = [f"c{number}" for number in range(200)]
    connection.execute(f"CREATE TABLE public.t (id int PRIMARY KEY, {', '.join(f'{name} int' for name in names)})")
    followed = Followed(connection, "t", style=style)
    connection.execute("INSERT INTO public.t (id, c199) VALUES (1, 5), (2, 6)")
    connection.execute("UPDATE public.t SET c150 = 7 WHERE id = 2")
    followed.ingest()
    assert followed.rows == followed.source()


def test_types_of_the_user_can_still_be_changed(connection: Connection) -> None:
    connection.execute(
        "CREATE TYPE public.mood AS ENUM ('sad'); CREATE DOMAIN public.d AS int NOT NULL CHECK (VALUE > 0)"
    )
    connection.execute("CREATE TABLE public.t (id public.d, m public.mood, ms public.mood[])")
    followed = Followed(connection, "t")
    connection.execute("ALTER TYPE public.mood ADD VALUE 'glad'")
    connection.execute("INSERT INTO public.t VALUES (1, 'glad', '{sad,glad}'), (2, NULL, NULL)")
    connection.execute("DELETE FROM public.t WHERE id = 2")
    followed.ingest()
    assert followed.rows == {(1, "glad", ("sad", "glad")): 1}
    connection.execute("DROP TABLE public.t")
    connection.execute("DROP TYPE public.mood; DROP DOMAIN public.d")


@pytest.mark.parametrize(
    "kind, values",
    [
        # A composite type, of which PostgreSQL says that it is NULL when all of its fields are.
        ("AS (a int, b text)", ("(1,x)", "(2,y)", "(,)")),
        ("AS ENUM ('one', 'two', 'three')", ("one", "two", "three")),
        ("AS RANGE (subtype = text)", ("[a,b)", "[c,d)", "[e,f)")),
    ],
)
def test_keys_of_types_that_are_not_built_in(
    connection: Connection, style: Style, kind: str, values: tuple[str, str, str]
) -> None:
    first, second, third = values
    connection.execute(f"CREATE TYPE public.mine {kind}")
    connection.execute("CREATE TABLE public.t (k public.mine, n int, v text, PRIMARY KEY (k, n))")
    connection.execute("INSERT INTO public.t VALUES (%s, 1, 'a'), (%s, 1, 'b')", (first, second))
    followed = Followed(connection, "t", style=style)
    connection.execute("UPDATE public.t SET v = 'c' WHERE k = %s::public.mine", (first,))
    connection.execute("UPDATE public.t SET k = %s WHERE k = %s::public.mine", (third, second))
    followed.ingest()
    assert followed.rows == {(first, 1, "c"): 1, (third, 1, "b"): 1}


def test_a_key_with_operators_of_its_own(connection: Connection, style: Style) -> None:
    """As a type of an extension has them: in a schema that no search_path of ours leads to."""
    connection.execute("CREATE SCHEMA ext; CREATE TYPE ext.label")
    for name, of, gives in (("in", "cstring", "ext.label"), ("out", "ext.label", "cstring")):
        plain = f"CREATE FUNCTION ext.label_{name}({of}) RETURNS {gives} LANGUAGE internal IMMUTABLE STRICT"
        connection.execute(f"{plain} AS 'text{name}'")
    connection.execute("CREATE TYPE ext.label (INPUT = ext.label_in, OUTPUT = ext.label_out, LIKE = text)")
    for sign, name in (("<", "lt"), ("<=", "le"), ("=", "eq"), (">=", "ge"), (">", "gt")):
        connection.execute(
            f"CREATE FUNCTION ext.label_{name}(ext.label, ext.label) RETURNS bool LANGUAGE sql IMMUTABLE STRICT"
            f" AS $$ SELECT $1::text {sign} $2::text $$;"
            f"CREATE OPERATOR ext.{sign} (FUNCTION = ext.label_{name}, LEFTARG = ext.label, RIGHTARG = ext.label)"
        )
    connection.execute(
        "CREATE FUNCTION ext.label_cmp(ext.label, ext.label) RETURNS int LANGUAGE sql IMMUTABLE STRICT"
        " AS $$ SELECT bttextcmp($1::text, $2::text) $$;"
        "CREATE OPERATOR CLASS ext.label_ops DEFAULT FOR TYPE ext.label USING btree AS OPERATOR 1 ext.<,"
        " OPERATOR 2 ext.<=, OPERATOR 3 ext.=, OPERATOR 4 ext.>=, OPERATOR 5 ext.>, FUNCTION 1 ext.label_cmp"
    )
    connection.execute("CREATE TABLE public.t (k ext.label PRIMARY KEY, v text)")
    connection.execute("INSERT INTO public.t VALUES ('a', 'x'), ('b', 'x')")
    followed = Followed(connection, "t", style=style)
    connection.execute("UPDATE public.t SET v = 'y' WHERE k::text = 'a'")
    connection.execute("UPDATE public.t SET k = 'c' WHERE k::text = 'b'")
    followed.ingest()
    assert followed.rows == {("a", "y"): 1, ("c", "x"): 1}


def test_texts_are_spelled_the_same_whoever_writes(connection: Connection, dsn: str, style: Style) -> None:
    connection.execute("CREATE TYPE public.span AS (at timestamptz, day date, took interval, much float8)")
    connection.execute("CREATE TABLE public.t (id int PRIMARY KEY, s public.span)")
    followed = Followed(connection, "t", style=style)
    with session(dsn) as other:
        other.execute(
            "SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'; SET intervalstyle = 'postgres_verbose'"
        )
        other.execute("SET extra_float_digits = -10")
        other.execute(
            "INSERT INTO public.t VALUES (1, ROW('2024-02-03 12:00+00', '2024-02-03', '1 day 2 hours', pi())),"
            " (2, ROW('2024-02-03 12:00+00', '2024-02-03', '1 day', 1))"
        )
        other.execute("DELETE FROM public.t WHERE id = 2")
        assert other.execute("SHOW timezone").fetchone() == ("Asia/Kathmandu",)
        other.commit()
    followed.ingest()
    expected = connection.execute("SELECT id, s::text FROM public.t").fetchall()
    assert list(followed.rows) == expected


@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE public.t DROP COLUMN name",
        "ALTER TABLE public.t ALTER COLUMN price TYPE text",
        "ALTER TABLE public.t RENAME COLUMN name TO called",
    ],
)
def test_a_used_column_that_goes_never_makes_a_write_fail(connection: Connection, ddl: str) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=replace(OWN, guarded=False))
    connection.execute(ddl)
    connection.execute("INSERT INTO public.t (id) VALUES (100)")
    connection.execute("UPDATE public.t SET id = id + 1000")
    changes = followed.ingest()
    assert changes is not None
    assert changes.schema_changed is not None
    assert changes.rows.num_rows == 0


def test_columns_that_nobody_uses_come_and_go(connection: Connection, style: Style) -> None:
    connection.execute("CREATE TABLE public.t (spare int, id int PRIMARY KEY, name text)")
    table = describe(connection, "public", "t").with_columns(["id", "name"])
    followed = Followed(connection, "t", style=style)
    followed.capture.disarm(followed.table)
    followed.table = table
    followed.capture.arm(table)
    followed.position = followed.capture.position()
    connection.execute("INSERT INTO public.t VALUES (1, 2, 'a')")
    connection.execute("ALTER TABLE public.t DROP COLUMN spare, ADD COLUMN fresh int DEFAULT 7")
    connection.execute("INSERT INTO public.t VALUES (3, 'b', 4)")
    connection.execute("VACUUM FULL public.t")
    connection.execute("UPDATE public.t SET name = name || '!'")
    followed.ingest()
    assert followed.rows == followed.source() == {(2, "a!"): 1, (3, "b!"): 1}


def test_the_guard_refuses_what_would_break_the_replica(connection: Connection) -> None:
    keyed(connection)
    followed = Followed(connection, "t")
    for ddl in ("DROP COLUMN name", "ALTER COLUMN price TYPE text"):
        with pytest.raises(
            (psycopg.errors.DependentObjectsStillExist, psycopg.errors.FeatureNotSupported),
            match="trigger",
        ):
            connection.execute(f"ALTER TABLE public.t {ddl}")
    connection.execute("ALTER TABLE public.t ADD COLUMN more int")
    followed.capture.disarm(followed.table)
    connection.execute("ALTER TABLE public.t DROP COLUMN name")


def test_arming_again_and_disarming(connection: Connection, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    connection.execute("INSERT INTO public.t VALUES (100, 'x', 1)")
    followed.capture.arm(followed.table)
    assert followed.buffered() == 1, "what waits is still there"
    assert armed_oids(connection, style) == [followed.table.oid]
    connection.execute("ALTER TABLE public.t RENAME TO u")
    followed.capture.disarm(followed.table)
    followed.capture.disarm(followed.table)
    assert armed_oids(connection, style) == []
    left = connection.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone()
    assert left == (0,)
    connection.execute("INSERT INTO public.u VALUES (101, 'x', 1)")
    connection.execute("DROP TABLE public.u")
    followed.capture.disarm(followed.table)


def test_two_that_attached_one_table_do_not_know_of_each_other(connection: Connection, style: Style) -> None:
    keyed(connection)
    mine = Followed(connection, "t", style=style)
    theirs = Followed(connection, "t", style=replace(style, owner="f" * 32))
    connection.execute("INSERT INTO public.t VALUES (100, 'x', 1)")
    connection.execute("UPDATE public.t SET price = 7 WHERE id = 1")
    mine.ingest()
    assert theirs.buffered() == 3, "what one has read the other has not"
    mine.capture.disarm(mine.table)
    assert (armed_oids(connection, mine.style), armed_oids(connection, theirs.style)) == ([], [theirs.table.oid])
    connection.execute("DELETE FROM public.t WHERE id = 2")
    theirs.ingest()
    assert theirs.rows == theirs.source()


def test_what_is_missing_is_told(connection: Connection) -> None:
    keyed(connection)
    followed = Followed(connection, "t")
    connection.execute("INSERT INTO public.t VALUES (100, 'x', 1)")
    (health,) = followed.capture.health([followed.table])
    assert (health.state, health.rows) == (State.OK, 1)
    connection.execute("ALTER TABLE public.t DISABLE TRIGGER trickle_update_0a")
    (health,) = followed.capture.health([followed.table])
    assert health.state is State.CRITICAL
    assert "trickle_update_0a" in health.message
    followed.capture.arm(followed.table)
    assert followed.capture.trouble(followed.table) is None


def lost(followed: Followed) -> str:
    """Why the changes of the table cannot be told."""
    after = {followed.table.oid: followed.position}
    ((_, changes),) = followed.capture.changes([followed.table], after, followed.capture.position())
    return str(changes.schema_changed)


def test_a_buffer_that_lost_its_rows_is_noticed(connection: Connection) -> None:
    keyed(connection)
    followed = Followed(connection, "t")
    buffer = buffer_name(followed.style, followed.table.oid)
    connection.execute(sql.SQL("TRUNCATE {}").format(buffer))
    assert "lost its rows" in lost(followed)
    connection.execute(sql.SQL("DROP TABLE {}").format(buffer))
    assert "is gone" in lost(followed)


def test_a_buffer_that_was_made_anew_is_noticed(connection: Connection, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    connection.execute("INSERT INTO public.t VALUES (100, 'captured, and lost', 1)")
    followed.capture.disarm(followed.table)
    followed.capture.arm(followed.table)
    assert "made it anew" in lost(followed)


@pytest.mark.parametrize("bound", [Bound(rows=9), Bound(bytes=10_000)])
def test_more_than_fits_is_left_to_a_load(connection: Connection, style: Style, bound: Bound) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    followed.capture = TriggerCapture(connection, style, bound)
    connection.execute("INSERT INTO public.t SELECT g, 'small', NULL FROM generate_series(101, 109) g")
    followed.ingest()
    assert followed.rows == followed.source()
    random_text = "SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 40) i"
    connection.execute(f"INSERT INTO public.t SELECT g, ({random_text}), 1 FROM generate_series(201, 210) g")
    assert "too much changed" in lost(followed)


def test_a_database_that_went_back_in_time_is_noticed(connection: Connection) -> None:
    keyed(connection)
    followed = Followed(connection, "t")
    followed.position = "trigger:99999999:99999999:"
    assert "was restored" in lost(followed)


def test_large_buffers_are_emptied_and_later_rows_stay(
    connection: Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trickle.sources.postgres.buffers.LARGE_BYTES", 1)
    keyed(connection)
    followed = Followed(connection, "t")
    connection.execute("UPDATE public.t SET price = 7")
    followed.ingest()
    assert followed.buffered() == 0
    with session(dsn) as other:
        other.execute("INSERT INTO public.t VALUES (100, 'waits', 1)")
        followed.ingest()
        between = followed.capture.position()
        other.commit()
    followed.ingest(upto=between)
    assert followed.buffered() == 1
    followed.ingest()
    assert followed.rows == followed.source()
    assert followed.buffered() == 0
    connection.execute("DELETE FROM public.t WHERE id = 100")
    followed.ingest()
    assert followed.rows == followed.source()


def test_listeners_are_told(connection: Connection, dsn: str) -> None:
    keyed(connection)
    Followed(connection, "t")
    with connected(dsn) as listening:
        listening.execute("LISTEN trickle")
        connection.execute("INSERT INTO public.t VALUES (100, 'x', 1)")
        heard = next(listening.notifies(timeout=10), None)
    assert heard is not None
    assert heard.channel == "trickle"


def test_concurrent_writers(connection: Connection, dsn: str, style: Style) -> None:
    keyed(connection)
    followed = Followed(connection, "t", style=style)
    failures: list[BaseException] = []

    def guarded(work: Callable[[int], None], seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with session(dsn) as mine:
            for _ in range(40):
                low = chance.randrange(200)
                mine.execute(
                    "INSERT INTO public.t VALUES (%s, 'w', 1)"
                    " ON CONFLICT (id) DO UPDATE SET price = public.t.price + 1",
                    (low,),
                )
                if chance.random() < 0.3:
                    mine.execute("SAVEPOINT s")
                    mine.execute("DELETE FROM public.t WHERE id = %s", (low,))
                    mine.execute("ROLLBACK TO s" if chance.random() < 0.5 else "RELEASE s")
                mine.rollback() if chance.random() < 0.2 else mine.commit()

    writers = [threading.Thread(target=guarded, args=(write, seed)) for seed in range(6)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        followed.ingest()
    for writer in writers:
        writer.join()
    assert failures == []
    followed.ingest()
    assert followed.rows == followed.source()
