"""Stream tables are made, kept, described and removed."""

from __future__ import annotations

import psycopg
import pytest

from tests.immediate.postgres.story import Story
from trickle.errors import DependentsExist, DuplicateName, QueryError, UnknownTable, UnsupportedQuery
from trickle.immediate.postgres import describe, drop, install, installed, rebuild
from trickle.settings import Settings

TOTALS = "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"
OBJECTS = """
    SELECT 'table ' || relname FROM pg_class WHERE relnamespace = 'trickle_immediate'::regnamespace
    UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'trickle_immediate'::regnamespace
    UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'trickle_immediate'::regnamespace
"""
FIRST_10 = "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 10"
HOSTILE = ("quo\"te's", "spa ce", "Mixed.Case", "ünï $$ \\", "x" * 63, "select", "n", "trickle_new", "%s")


def test_a_stream_table_is_described_as_it_was_made(shop: Story) -> None:
    made = shop.install("totals", TOTALS)
    assert describe(shop.connection, "totals") == made
    assert made.sources == ("public.orders",)
    assert installed(shop.connection) == [("public", "totals")]


def test_dropping_leaves_nothing(shop: Story) -> None:
    shop.install("totals", TOTALS)
    before = set(shop.rows(OBJECTS))
    query = (
        "SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer)"
        " x GROUP BY n"
    )
    assert shop.install("sizes", query).inner_tables
    shop.run("INSERT INTO orders VALUES (1000, 3, 5, NULL, NULL)")
    shop.drop("sizes")
    assert set(shop.rows(OBJECTS)) == before
    shop.run("DELETE FROM orders WHERE id = 1000")
    assert shop.rows("SELECT to_regclass('sizes')") == [(None,)]


def test_a_stream_table_that_others_read_stays(shop: Story) -> None:
    shop.install("totals", TOTALS)
    shop.install("big", "SELECT customer FROM totals WHERE n > 3")
    with pytest.raises(DependentsExist, match=r"public\.totals is read by public\.big"):
        drop(shop.connection, "totals")
    drop(shop.connection, "totals", cascade=True)
    assert installed(shop.connection) == []


def test_names_are_taken_as_they_are(story: Story) -> None:
    columns = ", ".join(f"{_quoted(name)} int" for name in HOSTILE)
    for place, name in enumerate(HOSTILE):
        table = _quoted(name + "t" if len(name) < 60 else name[:-1] + "t")
        story.connection.execute(f"CREATE TABLE {table} ({columns})")
        query = (
            f"SELECT {_quoted(name)}, count(*) AS {_quoted(HOSTILE[place - 1])} FROM {table} GROUP BY {_quoted(name)}"
        )
        story.install(name, query)
        story.run(
            f"INSERT INTO {table} SELECT {', '.join(['i % 3'] * len(HOSTILE))} FROM generate_series(1, 5) AS s(i)",
            f"UPDATE {table} SET {_quoted(name)} = 7 WHERE {_quoted(name)} = 1",
            (
                f"WITH d AS (DELETE FROM {table} WHERE {_quoted(name)} = 7 RETURNING *) INSERT INTO {table} SELECT *"
                f" FROM d"
            ),
            f"TRUNCATE {table}",
        )
    for name in HOSTILE:
        drop(story.connection, name)
    assert installed(story.connection) == []


def test_other_schemas(story: Story) -> None:
    story.connection.execute('CREATE SCHEMA "My Schema"; CREATE TABLE "My Schema"."T" (a int)')
    story.connection.execute('SET search_path = "My Schema"')
    story.install("S", 'SELECT a, count(*) AS n FROM "T" GROUP BY a', schema="My Schema")
    story.connection.execute("RESET search_path")
    story.queries = {'"My Schema"."S"': 'SELECT a, count(*) AS n FROM "My Schema"."T" GROUP BY a'}
    story.run('INSERT INTO "My Schema"."T" VALUES (1), (1), (NULL)')
    assert describe(story.connection, "S", schema="My Schema").sources == ("My Schema.T",)


def test_a_name_that_is_taken(shop: Story) -> None:
    with pytest.raises(DuplicateName, match=r"public\.orders is there already"):
        install(shop.connection, "orders", TOTALS)


def test_a_query_that_postgresql_refuses(shop: Story) -> None:
    with pytest.raises(QueryError) as error:
        install(shop.connection, "bad", "SELECT nothing FROM orders")
    assert error.value.detail is not None
    assert 'column "nothing" does not exist' in error.value.detail
    assert installed(shop.connection) == []


def test_an_unknown_stream_table(shop: Story) -> None:
    with pytest.raises(UnknownTable):
        describe(shop.connection, "nobody")
    with pytest.raises(UnknownTable):
        drop(shop.connection, "nobody")


def test_nobody_else_writes(shop: Story) -> None:
    shop.install("totals", TOTALS)
    for statement in (
        "DELETE FROM totals",
        "INSERT INTO totals VALUES (1)",
        "UPDATE totals SET n = 0",
        "TRUNCATE totals",
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="kept by its query"):
            shop.connection.execute(statement)
    shop.check("writes that were refused")


def test_what_a_query_uses_cannot_go(shop: Story) -> None:
    shop.install("totals", TOTALS)
    for statement in (
        "ALTER TABLE orders DROP COLUMN amount",
        "DROP TABLE orders",
        "ALTER TABLE orders ALTER amount TYPE text",
    ):
        with pytest.raises(psycopg.Error):
            shop.connection.execute(statement)
    shop.run(
        "ALTER TABLE orders DROP COLUMN note",
        "ALTER TABLE orders ADD COLUMN more int",
        "DELETE FROM orders WHERE id = 3",
    )


def test_a_renamed_source_is_followed_no_further_in_silence(shop: Story) -> None:
    shop.install("totals", TOTALS)
    shop.connection.execute("ALTER TABLE orders RENAME TO purchases")
    with pytest.raises(psycopg.errors.UndefinedTable):
        shop.connection.execute("DELETE FROM purchases WHERE amount = (SELECT min(amount) FROM purchases)")


def test_what_is_stored_was_changed_by_hand(shop: Story) -> None:
    shop.install("totals", TOTALS)
    shop.install("listed", "SELECT id, amount FROM orders")
    for statement in ("DELETE FROM totals WHERE customer = 3", "DELETE FROM listed WHERE id = 5"):
        table = statement.split()[2]
        shop.connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER trickle_immediate_guard")
        shop.connection.execute(statement)
        shop.connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER trickle_immediate_guard")
    for statement in ("DELETE FROM orders WHERE customer = 3", "DELETE FROM orders WHERE id = 5"):
        with pytest.raises(psycopg.errors.DataCorrupted, match="does not hold rows that go"):
            shop.connection.execute(statement)
    for name in ("totals", "listed"):
        rebuild(shop.connection, name)
    shop.run("DELETE FROM orders WHERE customer = 3", "DELETE FROM orders WHERE id = 5")


def test_first_rows_up_to_a_limit(shop: Story) -> None:
    with pytest.raises(UnsupportedQuery, match="LIMIT 10 is more than IMMEDIATE keeps"):
        install(shop.connection, "top", FIRST_10, settings=Settings(ivm_topk_max_limit=9))
    shop.install("top", FIRST_10, settings=Settings(ivm_topk_max_limit=10))


def test_indexes_that_changes_would_use(shop: Story) -> None:
    query = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer"
    assert shop.install("named", query).missing_indexes == ('CREATE INDEX ON "public"."orders" ("customer")',)
    shop.drop("named")
    assert shop.install("named", query, create_indexes=True).missing_indexes == ()
    assert shop.rows("SELECT count(*) FROM pg_indexes WHERE tablename = 'orders'") == [(2,)]


def test_writers_need_no_rights_on_what_is_ours(shop: Story) -> None:
    shop.install("totals", TOTALS)
    shop.connection.execute("DROP ROLE IF EXISTS immediate_writer; CREATE ROLE immediate_writer")
    shop.connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO immediate_writer")
    shop.connection.execute("SET ROLE immediate_writer")
    shop.connection.execute("CREATE TEMPORARY TABLE totals (customer int)")
    shop.connection.execute("INSERT INTO orders VALUES (1001, 1, 7, NULL, NULL)")
    shop.connection.execute("RESET ROLE")
    shop.connection.execute("DROP TABLE pg_temp.totals")
    shop.check("an insert by another role")
    shop.connection.execute("DROP OWNED BY immediate_writer; DROP ROLE immediate_writer")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
