"""Statements that change several tables at once, or nothing, or are undone."""

from __future__ import annotations

import psycopg
import pytest

from tests.immediate.postgres.story import Story
from trickle.immediate.postgres.functions import Function

JOINED = "SELECT c.id, c.name, o.id AS o, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id"
TOTALS = (
    "SELECT c.region, sum(o.amount) AS s, count(*) AS n FROM customers c JOIN orders o ON o.customer ="
    " c.id GROUP BY c.region"
)
PAIRS = "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer"


@pytest.fixture
def joined(shop: Story) -> Story:
    for name, query in (("joined", JOINED), ("totals", TOTALS), ("pairs", PAIRS)):
        shop.install(name, query)
    return shop


def test_one_statement_that_changes_two_tables(joined: Story) -> None:
    joined.run(
        """WITH c AS (INSERT INTO customers VALUES (50, 'fifty', 'r1') RETURNING id)
           INSERT INTO orders SELECT 500 + n, c.id, n, NULL, NULL FROM c, generate_series(1, 3) n""",
        """WITH o AS (DELETE FROM orders WHERE customer = 50 RETURNING customer)
           UPDATE customers SET region = 'r2' WHERE id IN (SELECT customer FROM o)""",
        """WITH a AS (UPDATE orders SET amount = 1 WHERE id = 3), b AS (DELETE FROM customers WHERE id = 4)
           INSERT INTO orders VALUES (600, 4, 2, NULL, NULL)""",
    )


def test_foreign_keys_that_cascade(joined: Story) -> None:
    joined.run(
        "DELETE FROM orders WHERE customer > 12",
        "ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE",
        "DELETE FROM customers WHERE id IN (3, 4)",
        "UPDATE customers SET id = id + 100 WHERE id < 8",
        "DELETE FROM customers",
    )


def test_triggers_of_the_users(joined: Story) -> None:
    joined.connection.execute("""
        CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO orders VALUES (1000 + NEW.id, NEW.id, 1, NULL, 'by a trigger');
          UPDATE orders SET amount = amount + 1 WHERE customer = NEW.id;
          RETURN NEW;
        END $$;
        CREATE TRIGGER a_first AFTER INSERT ON customers FOR EACH ROW EXECUTE FUNCTION follow();
        CREATE TRIGGER z_last BEFORE UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION follow();
    """)
    joined.run(
        "INSERT INTO customers SELECT n, 'x', 'r1' FROM generate_series(60, 63) n",
        "UPDATE customers SET region = 'r3', id = id + 1000 WHERE id = 60",
    )


def test_merge_and_upsert(joined: Story) -> None:
    joined.run(
        (
            "INSERT INTO orders VALUES (1, 5, 3, NULL, NULL), (800, 5, 3, NULL, NULL) ON CONFLICT (id) DO UPDATE"
            " SET amount = 70"
        ),
        "INSERT INTO orders VALUES (1, 5, 3, NULL, NULL) ON CONFLICT DO NOTHING",
        """MERGE INTO orders USING (VALUES (1), (2), (900)) AS v(id) ON orders.id = v.id
           WHEN MATCHED AND v.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET customer = 6
           WHEN NOT MATCHED THEN INSERT VALUES (v.id, 7, 8, NULL, NULL)""",
    )


def test_copy(joined: Story) -> None:
    with joined.connection.cursor().copy("COPY orders (id, customer, amount) FROM STDIN") as copy:
        for row in ((2000, 3, 1.5), (2001, 3, None)):
            copy.write_row(row)
    joined.check("COPY")


def test_truncate(joined: Story) -> None:
    joined.run("TRUNCATE orders", "INSERT INTO orders VALUES (1, 1, 1, NULL, NULL)", "TRUNCATE orders, customers")


def test_truncate_inside_of_another_statement(joined: Story) -> None:
    joined.connection.execute("""
        CREATE FUNCTION clear() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN TRUNCATE orders; RETURN NULL; END $$;
        CREATE TRIGGER a_clear AFTER INSERT ON customers FOR EACH ROW EXECUTE FUNCTION clear();
    """)
    joined.run("INSERT INTO customers VALUES (70, 'x', 'r1')", "INSERT INTO orders VALUES (1, 70, 1, NULL, NULL)")


def test_what_is_rolled_back_never_was(joined: Story) -> None:
    before = joined.rows("SELECT * FROM totals ORDER BY 1")
    with joined.connection.transaction(force_rollback=True):
        joined.run("INSERT INTO orders VALUES (3000, 3, 7, NULL, NULL)", "DELETE FROM customers WHERE id = 5")
    joined.check("a rollback")
    assert joined.rows("SELECT * FROM totals ORDER BY 1") == before


def test_savepoints(joined: Story) -> None:
    with joined.connection.transaction():
        joined.run("INSERT INTO orders VALUES (3000, 3, 7, NULL, NULL)")
        with joined.connection.transaction(force_rollback=True):
            joined.run("DELETE FROM orders WHERE customer = 3")
        joined.check("a rollback to a savepoint")
        with pytest.raises(psycopg.errors.DivisionByZero), joined.connection.transaction():
            joined.connection.execute("UPDATE orders SET amount = amount / (id - 30)")
        joined.run("DELETE FROM orders WHERE id = 3000")
    joined.check("the end")


def test_a_statement_that_fails_half_way_leaves_no_count_behind(joined: Story) -> None:
    for _ in range(2):
        with pytest.raises(psycopg.errors.UniqueViolation):
            joined.connection.execute("INSERT INTO orders VALUES (9000, 1, 1, NULL, NULL), (1, 1, 1, NULL, NULL)")
        joined.run("UPDATE orders SET amount = amount + 1 WHERE id = 2")


def test_statements_that_change_nothing(joined: Story) -> None:
    joined.run(
        "UPDATE orders SET note = 'other'", "UPDATE orders SET amount = amount", "DELETE FROM orders WHERE false",
        "INSERT INTO orders SELECT * FROM orders WHERE false",
    )  # fmt: skip


@pytest.mark.parametrize("statement", ["DELETE FROM orders WHERE id = 1", "TRUNCATE orders"])
@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_other_isolation_levels_are_refused(joined: Story, isolation: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="is kept in the transaction") as error:
        joined.connection.execute(f"BEGIN ISOLATION LEVEL {isolation}; {statement}")
    assert error.value.diag.message_hint == "use READ COMMITTED"
    joined.connection.execute("ROLLBACK")
    joined.check("what was refused")


def test_truncate_does_not_miss_what_others_committed_since_the_snapshot(joined: Story, url: str) -> None:
    with psycopg.connect(url) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("SELECT count(*) FROM joined")
        joined.run("INSERT INTO customers VALUES (70, 'after the snapshot', 'r1')")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="is kept in the transaction"):
            late.execute("TRUNCATE orders")
    joined.run("TRUNCATE orders")


def test_replayed_changes_are_followed(joined: Story) -> None:
    joined.connection.execute("SET session_replication_role = replica")
    joined.run("DELETE FROM orders WHERE id = 4")


def test_a_body_may_hold_any_text() -> None:
    made = Function("f", "void", "BEGIN PERFORM '$trickle$', '$trickle_$'; END").sql
    assert made.endswith("$trickle__$")
    assert made.count("$trickle__$") == 2
