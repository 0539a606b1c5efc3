"""Capture by WAL against a real server: a replica in memory equals its source after every ingest."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres import Postgres
from tests.sources.postgres.small_lake import SmallLake
from trickle.errors import HistoryLost, SourceRefused
from trickle.postgres.connect import connected
from trickle.sources.postgres.capture import State
from trickle.sources.postgres.wal import WalCapture


def test_inserts_updates_and_deletes_arrive_once(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE orders (id int PRIMARY KEY, who text, amount numeric(10, 2))")
    user.execute("INSERT INTO orders SELECT n, 'ada', n FROM generate_series(1, 10) n")
    lake.attach("orders")
    lake.check()
    user.execute("INSERT INTO orders VALUES (11, 'bob', 1.50), (12, NULL, NULL)")
    user.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 3")
    user.execute("DELETE FROM orders WHERE id = 4")
    lake.ingest()
    lake.check()
    assert lake.ingest() == {}


def test_only_what_commits_arrives(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    lake.attach("t")
    with user.transaction(force_rollback=True):
        user.execute("INSERT INTO t VALUES (1, 1)")
    with user.transaction():
        user.execute("INSERT INTO t VALUES (2, 2)")
        with user.transaction(force_rollback=True):
            user.execute("INSERT INTO t VALUES (3, 3)")
            user.execute("UPDATE t SET v = 0")
        with user.transaction():
            user.execute("INSERT INTO t VALUES (4, 4)")
            user.execute("DELETE FROM t WHERE id = 2")
    lake.ingest()
    lake.check()
    assert sum(lake.rows[lake.tables.popitem()[0]].values()) == 1


def test_a_transaction_that_commits_late_is_not_skipped(
    lake: SmallLake, user: psycopg.Connection, wal_dsn: str
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    lake.attach("t")
    with psycopg.connect(wal_dsn) as slow:
        slow.execute("INSERT INTO t VALUES (1, 1)")
        user.execute("INSERT INTO t VALUES (2, 2)")
        lake.ingest()
        lake.check()
        slow.commit()
    lake.ingest()
    lake.check()


def test_a_prepared_transaction_arrives_when_it_commits(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    try:
        user.execute("BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'later'")
    except psycopg.errors.ObjectNotInPrerequisiteState:
        pytest.fail("the server of the tests allows prepared transactions")
    assert lake.ingest() == {}
    user.execute("COMMIT PREPARED 'later'")
    lake.ingest()
    lake.check()


def test_what_is_written_during_the_load_is_neither_missing_nor_twice(
    lake: SmallLake, user: psycopg.Connection, wal_dsn: str
) -> None:
    user.execute("CREATE TABLE t (id int, v int)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    user.execute("INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)")
    user.execute("CREATE TABLE other (id int PRIMARY KEY)")
    lake.attach("other")
    with psycopg.connect(wal_dsn) as slow:
        # It has an id before the snapshot is taken, and writes and commits after it.
        slow.execute("INSERT INTO other VALUES (1)")

        def meanwhile() -> None:
            user.execute("INSERT INTO t VALUES (3, 3)")
            user.execute("DELETE FROM t WHERE id = 2")
            slow.execute("INSERT INTO t VALUES (4, 4)")
            slow.commit()

        lake.attach("t", meanwhile=meanwhile)
    user.execute("UPDATE t SET v = 5 WHERE id = 3")
    lake.ingest()
    lake.check()


def test_a_table_that_is_added_later_joins_without_a_gap(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE a (id int PRIMARY KEY)")
    user.execute("CREATE TABLE b (id int PRIMARY KEY)")
    lake.attach("a")
    user.execute("INSERT INTO a VALUES (1)")
    user.execute("INSERT INTO b VALUES (1)")
    # What is in b before it is attached is in the slot's range too.
    lake.attach("b", meanwhile=lambda: user.execute("INSERT INTO b VALUES (2)"))
    with user.transaction():
        user.execute("INSERT INTO a VALUES (3)")
        user.execute("INSERT INTO b VALUES (3)")
    lake.ingest()
    lake.check()


def test_attaching_waits_for_writers_whose_rows_would_be_nowhere(
    lake: SmallLake, user: psycopg.Connection, wal_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trickle.errors import ConcurrentModification
    from trickle.sources.postgres import slots

    user.execute("CREATE TABLE a (id int PRIMARY KEY)")
    user.execute("CREATE TABLE b (id int PRIMARY KEY)")
    lake.attach("a")
    monkeypatch.setattr(slots, "LOCK_WAIT", "100ms")
    with psycopg.connect(wal_dsn) as slow:
        slow.execute("INSERT INTO b VALUES (1)")
        with pytest.raises(ConcurrentModification, match="could not be published"):
            lake.attach("b")
        slow.commit()
    lake.attach("b")
    lake.check()


def test_truncate_empties_and_what_follows_stays(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE parent (id int PRIMARY KEY)")
    user.execute("CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)")
    user.execute("INSERT INTO parent VALUES (1), (2)")
    user.execute("INSERT INTO child VALUES (1, 1), (2, 2)")
    lake.attach("parent")
    lake.attach("child")
    with user.transaction():
        user.execute("INSERT INTO parent VALUES (3)")
        user.execute("TRUNCATE parent CASCADE")
        user.execute("INSERT INTO parent VALUES (1)")
        user.execute("UPDATE parent SET id = 9 WHERE id = 1")
    found = lake.ingest()
    lake.check()
    assert found["parent"].truncated
    assert found["child"].truncated
    assert found["child"].rows.num_rows == 0


def test_a_key_that_wanders_is_followed(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    user.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.attach("t")
    for statement in (
        "UPDATE t SET id = 3 WHERE id = 1",
        "UPDATE t SET id = 1 WHERE id = 2",
        "UPDATE t SET id = 4, v = 'c' WHERE id = 3",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (1, 'new')",
        "INSERT INTO t VALUES (7, 'short')",
        "DELETE FROM t WHERE id = 7",
    ):
        user.execute(statement)
    found = lake.ingest()["t"]
    lake.check()
    assert found.by_key
    assert found.key == ("id",)


def test_values_stored_out_of_line_that_did_not_change_come_from_the_replica(
    lake: SmallLake, user: psycopg.Connection
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int, big text, other text)")
    user.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL")
    user.execute("INSERT INTO t SELECT n, 0, repeat(n::text, 5000), repeat('y', 5000) FROM generate_series(1, 4) n")
    lake.attach("t")
    user.execute("UPDATE t SET v = 1 WHERE id = 1")
    user.execute("UPDATE t SET v = 2, id = 10 WHERE id = 2")
    user.execute("UPDATE t SET v = 3, id = 20 WHERE id = 10")
    user.execute("UPDATE t SET other = NULL WHERE id = 3")
    user.execute("INSERT INTO t VALUES (5, 0, repeat('z', 5000), NULL)")
    user.execute("UPDATE t SET v = 9 WHERE id = 5")
    found = lake.ingest()["t"]
    lake.check()
    assert found.kept is not None
    # Rows 1 and 2 keep two values each, row 3 one; row 5 is known from the same batch.
    assert found.kept.num_rows == 5


def test_values_stored_out_of_line_come_from_the_old_row_where_it_is_whole(
    lake: SmallLake, user: psycopg.Connection
) -> None:
    user.execute("CREATE TABLE t (id int, v int, big text)")
    user.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY FULL")
    user.execute("INSERT INTO t VALUES (1, 0, repeat('x', 5000)), (1, 0, repeat('x', 5000))")
    lake.attach("t")
    user.execute("UPDATE t SET v = v + 1 WHERE ctid = '(0,1)'")
    found = lake.ingest()["t"]
    lake.check()
    assert not found.by_key


def test_a_key_that_is_itself_stored_out_of_line(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (k text PRIMARY KEY, v int)")
    user.execute("ALTER TABLE t ALTER k SET STORAGE EXTERNAL")
    user.execute("INSERT INTO t SELECT string_agg(md5(n::text), ''), 0 FROM generate_series(1, 80) n")
    lake.attach("t")
    user.execute("UPDATE t SET v = 1")
    user.execute("UPDATE t SET v = 2, k = k || 'x'")
    lake.ingest()
    lake.check()


def test_duplicates_of_a_table_without_a_key_are_counted(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (a int, b text)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    user.execute("INSERT INTO t SELECT 1, 'x' FROM generate_series(1, 3)")
    lake.attach("t")
    user.execute("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t LIMIT 1)")
    user.execute("INSERT INTO t VALUES (1, 'x'), (NULL, NULL), (NULL, NULL)")
    lake.ingest()
    lake.check()


@pytest.mark.parametrize("identity", ["DEFAULT", "NOTHING"])
def test_a_table_whose_old_rows_nobody_knows_is_refused_before_it_is_published(
    lake: SmallLake, user: psycopg.Connection, identity: str
) -> None:
    user.execute(f"CREATE TABLE t (a int); ALTER TABLE t REPLICA IDENTITY {identity}")
    user.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(SourceRefused) as caught:
        lake.attach("t")
    assert "ALTER TABLE public.t REPLICA IDENTITY FULL" in (caught.value.hint or "")
    # Had it been published, this would be refused.
    user.execute("UPDATE t SET a = 2")


def test_the_identity_may_be_another_unique_index(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL, v int)")
    user.execute("CREATE UNIQUE INDEX code ON t (code)")
    user.execute("ALTER TABLE t REPLICA IDENTITY USING INDEX code")
    user.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    lake.attach("t")
    user.execute("UPDATE t SET v = 3 WHERE id = 1")
    user.execute("UPDATE t SET code = 'c', id = 7 WHERE id = 2")
    found = lake.ingest()["t"]
    lake.check()
    assert found.key == ("code",)


def test_the_replica_identity_may_change_on_the_way(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    user.execute("INSERT INTO t SELECT n, n FROM generate_series(1, 5) n")
    lake.attach("t")
    user.execute("UPDATE t SET v = 10 WHERE id <= 2")
    user.execute("INSERT INTO t VALUES (6, 6)")
    user.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    user.execute("UPDATE t SET v = 20 WHERE id IN (2, 3, 6)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    user.execute("DELETE FROM t WHERE id IN (2, 4)")
    lake.ingest()
    lake.check()


def test_an_added_column_is_ignored(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    table = lake.attach("t")
    user.execute("INSERT INTO t VALUES (1, 1)")
    user.execute("ALTER TABLE t ADD more text DEFAULT 'x'")
    user.execute("INSERT INTO t VALUES (2, 2, 'y')")
    user.execute("UPDATE t SET more = 'z'")
    lake.ingest()
    assert sorted(lake.rows[table.oid]) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "statement, why",
    [
        ("ALTER TABLE t ALTER v TYPE bigint", "the type of column 'v' changed"),
        ("ALTER TABLE t ALTER amount TYPE numeric(12, 3)", "the type of column 'amount' changed"),
        ("ALTER TABLE t DROP v", "column 'v' was dropped or renamed"),
        ("ALTER TABLE t RENAME v TO w", "column 'v' was dropped or renamed"),
    ],
)
def test_a_used_column_that_changes_is_noticed_before_a_wrong_row_is_given(
    lake: SmallLake, user: psycopg.Connection, statement: str, why: str
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int, amount numeric(10, 2), name varchar(5))")
    user.execute("CREATE TABLE other (id int PRIMARY KEY)")
    lake.attach("t")
    lake.attach("other")
    user.execute("INSERT INTO t VALUES (1, 1, 1, 'a')")
    user.execute(statement)
    user.execute("INSERT INTO t (id) VALUES (2)")
    user.execute("INSERT INTO other VALUES (1)")
    found = dict(lake.peek())
    assert found["t"].schema_changed == why
    assert found["t"].rows.num_rows == 0
    assert found["other"].rows.num_rows == 1


def test_a_longer_varchar_is_the_same_in_the_lake(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, name varchar(5))")
    lake.attach("t")
    user.execute("ALTER TABLE t ALTER name TYPE varchar(50)")
    user.execute("INSERT INTO t VALUES (1, 'a longer name')")
    lake.ingest()
    lake.check()


def test_hostile_names(lake: SmallLake, user: psycopg.Connection) -> None:
    schema, table, column = 'my "schema".x', "Tä'ble; --" + "x" * 50, 'a "b" %s {}'
    user.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(schema)))
    name, col = psycopg.sql.Identifier(schema, table), psycopg.sql.Identifier(column)
    user.execute(psycopg.sql.SQL("CREATE TABLE {} ({} text PRIMARY KEY, v int)").format(name, col))
    lake.attach(table, schema=schema)
    user.execute(psycopg.sql.SQL("INSERT INTO {} VALUES ('x', 1), ('y', 2)").format(name))
    user.execute(psycopg.sql.SQL("UPDATE {} SET v = 3, {} = 'z' WHERE v = 1").format(name, col))
    lake.ingest()
    lake.check()
    lake.capture.disarm(next(iter(lake.tables.values())))


def test_the_same_peek_twice_gives_the_same(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (1)")
    upto = lake.capture.position()
    first = lake.peek(upto)
    user.execute("INSERT INTO t VALUES (2)")
    second = lake.peek(upto)
    assert first[0][1].rows.equals(second[0][1].rows)
    assert first[0][1].rows.num_rows == 1


def test_killed_between_lake_and_slot_nothing_comes_twice(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (a int)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (1)")
    lake.ingest(forget=False)
    lake.check()
    user.execute("INSERT INTO t VALUES (2)")
    lake.ingest(forget=False)
    lake.check()
    lake.ingest()
    lake.check()


def test_what_is_forgotten_may_be_forgotten_again(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    before = lake.capture.position()
    user.execute("INSERT INTO t VALUES (1)")
    lake.ingest()
    lake.capture.forget(next(iter(lake.positions.values())))
    lake.capture.forget(before)
    user.execute("INSERT INTO t VALUES (2)")
    lake.ingest()
    lake.check()


def test_a_backlog_is_taken_in_by_pieces(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    lake.options = {"piece_changes": 10, "piece_bytes": 1000}
    # Written during the load: what the snapshot sees must stay left out over all pieces.
    lake.attach("t", meanwhile=lambda: [user.execute("INSERT INTO t VALUES (%s, 'x')", (n,)) for n in range(50)])
    user.execute("DELETE FROM t WHERE id < 10")
    rounds = 0
    while lake.ingest():
        rounds += 1
    lake.check()
    assert rounds > 5


def test_a_large_transaction_is_one_piece(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    lake.options = {"piece_changes": 10, "piece_bytes": 1000}
    lake.attach("t")
    user.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 500) n")
    user.execute("INSERT INTO t VALUES (0, '')")
    assert lake.ingest()["t"].rows.num_rows == 500
    assert lake.ingest()["t"].rows.num_rows == 1
    lake.check()


def test_a_slot_that_somebody_removed_is_noticed(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    table = lake.attach("t")
    user.execute("SELECT pg_drop_replication_slot(%s)", (lake.name,))
    user.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(HistoryLost, match="no longer has what changed"):
        lake.ingest()
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (2)")
    lake.ingest()
    lake.check()
    assert lake.rows[table.oid].total() == 2


def test_a_slot_that_was_recreated_or_advanced_is_noticed(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    lake.ingest()
    user.execute("SET synchronous_commit = on")
    user.execute("INSERT INTO t VALUES (1)")
    user.execute(
        "SELECT pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)",
        (lake.name, lake.name),
    )
    with pytest.raises(HistoryLost) as caught:
        lake.ingest()
    assert "advanced" in (caught.value.detail or "")


def test_a_table_that_somebody_took_out_of_the_publication_is_lost_alone(
    lake: SmallLake, user: psycopg.Connection
) -> None:
    user.execute("CREATE TABLE a (id int PRIMARY KEY)")
    user.execute("CREATE TABLE b (id int PRIMARY KEY)")
    lake.attach("a")
    lake.attach("b")
    user.execute("ALTER PUBLICATION trickle_test DROP TABLE a")
    user.execute("INSERT INTO a VALUES (1)")
    user.execute("INSERT INTO b VALUES (1)")
    found = dict(lake.peek())
    assert "publication" in (found["a"].schema_changed or "")
    assert found["b"].rows.num_rows == 1
    lake.attach("a")
    lake.ingest()
    lake.check()


@pytest.mark.parametrize(
    "before, after",
    [
        ("DROP PUBLICATION trickle_test", "CREATE PUBLICATION trickle_test FOR TABLE t"),
        ("ALTER PUBLICATION trickle_test DROP TABLE t", "ALTER PUBLICATION trickle_test ADD TABLE t"),
        (
            "ALTER PUBLICATION trickle_test SET (publish = 'delete')",
            "ALTER PUBLICATION trickle_test SET (publish = 'insert, update, delete, truncate')",
        ),
        (
            "ALTER PUBLICATION trickle_test SET TABLE t WHERE (id > 5)",
            "ALTER PUBLICATION trickle_test SET TABLE t",
        ),
    ],
    ids=["made again", "put back", "altered", "filtered"],
)
def test_a_publication_that_was_another_for_a_moment(
    lake: SmallLake, user: psycopg.Connection, before: str, after: str
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    table = lake.attach("t")
    assert [one.state for one in lake.capture.health([table])] == [State.OK, State.OK]
    user.execute(before)
    user.execute("INSERT INTO t VALUES (1)")
    user.execute(after)
    assert "altered or made again" in lake.capture.health([table])[1].message
    found = dict(lake.peek())
    assert "not all the time in the publication" in (found["t"].schema_changed or "")
    lake.capture.disarm(table)
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (2)")
    lake.ingest()
    lake.check()


def test_nothing_is_left_at_the_source(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE a (id int PRIMARY KEY)")
    user.execute("CREATE TABLE b (id int PRIMARY KEY)")
    a, b = lake.attach("a"), lake.attach("b")
    user.execute("DROP TABLE b")
    lake.capture.disarm(a)
    lake.capture.disarm(b)
    lake.capture.disarm(b)
    left = user.execute(
        "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots"
        " WHERE database = current_database())"
    ).fetchone()
    assert left == (0,)


def test_a_value_that_was_there_for_a_moment_does_no_harm(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int, d date)")
    user.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (1, 'infinity'), (2, NULL)")
    user.execute("UPDATE t SET d = '2026-01-01' WHERE id = 1")
    lake.ingest()
    lake.check()


def test_a_value_that_the_lake_cannot_hold_is_named(lake: SmallLake, user: psycopg.Connection) -> None:
    from trickle.errors import InvalidData

    user.execute("CREATE TABLE t (id int PRIMARY KEY, d date)")
    lake.attach("t")
    user.execute("INSERT INTO t VALUES (1, 'infinity')")
    with pytest.raises(InvalidData, match="column 'd' of"):
        lake.ingest()


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
@pytest.mark.parametrize("most", [{"most_rows": 20}, {"most_bytes": 2000}])
def test_one_transaction_of_more_than_fits_is_left_to_a_load(
    lake: SmallLake, user: psycopg.Connection, identity: str, most: dict[str, int]
) -> None:
    user.execute("CREATE TABLE huge (id int PRIMARY KEY, v text); CREATE TABLE small (id int PRIMARY KEY)")
    user.execute(f"ALTER TABLE huge REPLICA IDENTITY {identity}")
    user.execute("INSERT INTO huge SELECT g, 'x' FROM generate_series(1, 10) g")
    lake.attach("huge")
    lake.attach("small")
    user.execute("INSERT INTO huge SELECT g, 'y' FROM generate_series(11, 200) g; INSERT INTO small VALUES (1)")
    user.execute("BEGIN; UPDATE huge SET v = repeat('z', 50); INSERT INTO small VALUES (2); COMMIT")
    capture = WalCapture(lake.connection, lake.name, **most)
    found = capture.changes(list(lake.tables.values()), lake.positions, capture.position())
    told = {table.name: changes for table, changes in found}
    assert "too much changed" in str(told["huge"].schema_changed)
    assert told["huge"].rows.num_rows == 0
    assert told["small"].rows.num_rows == 2


def test_another_key_within_a_range_is_noticed(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE two (id int PRIMARY KEY, code text NOT NULL UNIQUE, v text)")
    user.execute("INSERT INTO two VALUES (1, 'a', 'x'), (2, 'b', 'x')")
    lake.attach("two")
    user.execute("UPDATE two SET v = 'y' WHERE id = 1")
    user.execute("ALTER TABLE two REPLICA IDENTITY USING INDEX two_code_key")
    user.execute("DELETE FROM two WHERE id = 2")
    assert dict(lake.peek())["two"].schema_changed == "its replica identity is another key than before"


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_databases_of_another_encoding(logical_postgres: Postgres, identity: str) -> None:
    """Their texts and names come in the encoding of the session, which is UTF-8 whatever the server's is."""
    name = f"latin_{identity.lower()}"
    logical_postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    url = logical_postgres.url(name)
    try:
        with connected(url) as trickle, psycopg.connect(url, autocommit=True, client_encoding="utf8") as writer:
            writer.execute('CREATE TABLE "Größe" ("schlüssel" text PRIMARY KEY, wert text)')
            writer.execute(f'ALTER TABLE "Größe" REPLICA IDENTITY {identity}')
            writer.execute("""INSERT INTO "Größe" VALUES ('ä', 'é'), ('ö', 'ç')""")
            lake = SmallLake(trickle, url, name)
            table = lake.attach("Größe")
            writer.execute("""UPDATE "Größe" SET wert = 'ÿ' WHERE "schlüssel" = 'ä'""")
            writer.execute("""DELETE FROM "Größe" WHERE "schlüssel" = 'ö'; INSERT INTO "Größe" VALUES ('ü', 'ñ')""")
            lake.ingest()
            assert lake.rows[table.oid] == {("ä", "ÿ"): 1, ("ü", "ñ"): 1}
            lake.check()
            lake.capture.disarm(table)
    finally:
        logical_postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")
