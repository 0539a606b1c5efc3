"""What cannot be followed is refused when the stream table is made, with the reason."""

from __future__ import annotations

import pytest

from tests.immediate.postgres.story import Story
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres import install, installed

REFUSED = {
    "SELECT id, random() AS r FROM orders": r"random\(\) does not give the same value",
    "SELECT id FROM orders WHERE placed > current_date": "CURRENT_DATE depends on the time",
    "SELECT id FROM orders WHERE placed > now()": r"now\(\) does not give the same value",
    "SELECT id, age(placed) AS a FROM orders": r"age\(.*\) depends on the time",
    "SELECT id, current_user AS u FROM orders": "depends on the session",
    "SELECT id, generate_series(1, 3) AS g FROM orders": r"generate_series\(.*\) makes rows",
    "SELECT id, row_number() OVER (ORDER BY id) AS n FROM orders": "a window function without PARTITION BY",
    "SELECT id FROM orders ORDER BY id OFFSET 3": "OFFSET and without LIMIT",
    "SELECT id FROM orders LIMIT 3": "LIMIT without ORDER BY",
    "SELECT id FROM orders ORDER BY amount FETCH FIRST 3 ROWS WITH TIES": "WITH TIES",
    "SELECT * FROM orders TABLESAMPLE SYSTEM (10)": "TABLESAMPLE|cannot be read",
    "SELECT relname FROM pg_class": r"pg_catalog\.pg_class belongs to PostgreSQL|belongs to PostgreSQL",
    "SELECT id, last_value(amount) OVER (PARTITION BY customer ORDER BY placed) AS l FROM orders": "needs a ROWS frame",
    "SELECT n FROM parts": "partitioned table",
    "SELECT n FROM parents": "inherits",
    "SELECT n FROM forced": "forces row-level security",
    'SELECT "A" FROM cases': "differ in case alone",
    "SELECT note::json AS j FROM orders": "column 'j' has the type json, of which PostgreSQL has no hash",
    "SELECT n FROM summary": "materialized view",
}
TABLES = """
    CREATE TABLE parts (n int) PARTITION BY LIST (n);
    CREATE TABLE parents (n int); CREATE TABLE children () INHERITS (parents);
    CREATE TABLE forced (n int); ALTER TABLE forced FORCE ROW LEVEL SECURITY;
    CREATE TABLE cases ("A" int, a int);
    CREATE MATERIALIZED VIEW summary AS SELECT 1 AS n;
"""


@pytest.mark.parametrize("query", REFUSED)
def test_refused_with_the_reason(shop: Story, query: str) -> None:
    shop.connection.execute(TABLES)
    with pytest.raises(UnsupportedQuery, match=REFUSED[query]):
        install(shop.connection, "refused", query)
    assert installed(shop.connection) == []
    assert shop.rows("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal") == [(0,)]


def test_functions_of_the_users(shop: Story) -> None:
    shop.connection.execute("""
        CREATE SCHEMA "my fns";
        CREATE FUNCTION "my fns"."Double It"(x numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT x * 2';
        CREATE AGGREGATE "my fns"."Product"(numeric) (SFUNC = numeric_mul, STYPE = numeric, INITCOND = '1');
        CREATE FUNCTION first(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT x + 1';
        CREATE FUNCTION careless(x int) RETURNS int LANGUAGE sql AS 'SELECT x';
    """)
    shop.install(
        "own",
        'SELECT first(customer) AS f, "my fns"."Product"("my fns"."Double It"(amount)) AS p FROM orders GROUP BY 1',
    )
    shop.run("DELETE FROM orders WHERE id < 9", "UPDATE orders SET amount = 2 WHERE id > 40")
    with pytest.raises(UnsupportedQuery, match=r"careless\(integer\) does not give the same value"):
        install(shop.connection, "refused", "SELECT careless(id) AS c FROM orders")


def test_types_of_all_kinds(story: Story) -> None:
    story.connection.execute("""
        CREATE TYPE "Mood" AS ENUM ('sad', 'glad'); CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
        CREATE TABLE t (id int PRIMARY KEY, m "Mood", p percent, u uuid, b bytea, j jsonb, a int[], i interval,
                        r int4range, c char(4), v varchar(9), ts timestamptz, ip inet, bits bit(3), mo money,
            js json, flag boolean);
        INSERT INTO t SELECT n, CASE WHEN n % 2 = 0 THEN 'sad' ELSE 'glad' END::"Mood", n, md5(n::text)::uuid,
          '\\x0102', jsonb_build_object('n', n % 3), ARRAY[n, NULL], make_interval(days => n), int4range(n,
            n + 2), 'ab', 'cd',
          '2024-01-01 10:00+02', '10.0.0.1', B'101', n::money, '{"a": 1}', n % 3 = 0 FROM generate_series(1, 9) n
    """)
    story.install("listed", "SELECT m, p, u, b, j, a, i, r, c, v, ts, ip, bits::text, flag FROM t WHERE id <> 4")
    story.install("grouped", """SELECT m, j, a[1] % 2 AS odd, count(*) AS n, max(ts) AS ts, sum(i) AS i, min(v) AS v,
        bool_and(flag) AS f, sum(mo) AS mo, max(js ->> 'a') AS js FROM t GROUP BY 1, 2, 3""")  # fmt: skip
    story.install(
        "left_joined", "SELECT x.id, y.m, y.j, y.a, y.r, y.bits::text FROM t x LEFT JOIN t y ON y.p = x.p + 1"
    )
    story.run(
        "UPDATE t SET m = 'sad', j = NULL, a = '{7,8}' WHERE id % 2 = 1",
        "WITH d AS (DELETE FROM t WHERE id = 3 RETURNING id) UPDATE t SET bits = B'010' WHERE id = 5",
        "DELETE FROM t WHERE id > 6",
        "DELETE FROM t",
    )


def test_a_scalar_subquery_of_two_rows_is_the_writers_error(story: Story) -> None:
    story.connection.execute("CREATE TABLE t (k int, v int); CREATE TABLE u (k int); INSERT INTO u VALUES (1)")
    story.install("s", "SELECT u.k, (SELECT t.v FROM t WHERE t.k = u.k) AS v FROM u")
    story.run("INSERT INTO t VALUES (1, 5)")
    with pytest.raises(Exception, match="more than one row"):
        story.connection.execute("INSERT INTO t VALUES (1, 6)")
    story.run("UPDATE t SET v = 9")
