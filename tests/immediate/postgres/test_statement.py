"""Every construct of SQL that is followed, through inserts, updates and deletes of one row and of many."""

from __future__ import annotations

import pytest

from tests.immediate.postgres.story import Story

QUERIES = {
    "filter and project": "SELECT id, amount * 2 AS twice, upper(note) AS note FROM orders WHERE amount > 5",
    "duplicates": "SELECT customer, page FROM clicks",
    "rows without columns": "SELECT count(*) AS n FROM clicks",
    "sums": (
        "SELECT customer, sum(amount) AS s, avg(amount) AS a, count(amount) AS c, count(*) AS n FROM orders"
        " GROUP BY customer"
    ),
    "extremes": "SELECT customer, min(amount) AS low, max(placed) AS last FROM orders GROUP BY customer",
    "computed keys": "SELECT date_trunc('week', placed) AS week, sum(amount) FROM orders GROUP BY 1",
    "filtered aggregates": (
        "SELECT customer, sum(amount) FILTER (WHERE id % 2 = 0) AS even FROM orders GROUP BY customer"
    ),
    "aggregates that are read again": """SELECT customer, string_agg(id::text, ',' ORDER BY id) AS ids,
        bool_or(amount > 20), stddev_pop(amount::float8), count(DISTINCT placed),
            array_agg(id ORDER BY id) FROM orders GROUP BY customer""",
    "a total": "SELECT sum(amount) AS s, count(*) AS n, max(amount) AS top FROM orders",
    "a total of lists": "SELECT array_agg(id ORDER BY id) AS ids FROM orders WHERE id < 5",
    "having": "SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING sum(amount) > 40",
    "grouping sets": (
        "SELECT customer, placed, sum(amount), grouping(customer) AS g FROM orders GROUP BY ROLLUP (customer, placed)"
    ),
    "inner join": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "three tables": """SELECT c.region, k.page, sum(o.amount) AS s FROM orders o JOIN customers c ON c.id = o.customer
        JOIN clicks k ON k.customer = c.id GROUP BY c.region, k.page""",
    "self join": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id",
    "self join without a key": "SELECT a.page, b.page AS other FROM clicks a JOIN clicks b USING (customer)",
    "left join": "SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 10",
    "right join": "SELECT c.name, o.id FROM orders o RIGHT JOIN customers c ON o.customer = c.id",
    "full join": "SELECT c.name, o.id FROM customers c FULL JOIN orders o ON o.customer = c.id",
    "cross join": "SELECT c.name, x.n FROM customers c CROSS JOIN (SELECT count(*) AS n FROM clicks) x",
    "natural join": (
        "SELECT * FROM clicks NATURAL JOIN (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x"
    ),
    "lateral": """SELECT c.id, l.top FROM customers c
        CROSS JOIN LATERAL (SELECT max(o.amount) AS top FROM orders o WHERE o.customer = c.id) l""",
    "null-safe join": (
        "SELECT c.id, o.id AS other FROM customers c JOIN orders o ON c.region IS NOT DISTINCT FROM o.note"
    ),
    "exists": (
        "SELECT id FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.amount > 15)"
    ),
    "not exists": "SELECT id FROM customers c WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer = c.id)",
    "in": "SELECT id FROM orders WHERE customer IN (SELECT customer FROM clicks WHERE page = 'p1')",
    "not in": "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE amount > 12)",
    "under or": (
        "SELECT id FROM customers c WHERE region = 'r1' OR EXISTS (SELECT FROM clicks k WHERE k.customer = c.id)"
    ),
    "all": (
        "SELECT id FROM orders WHERE amount >= ALL (SELECT amount FROM orders WHERE customer = 3 AND amount"
        " IS NOT NULL)"
    ),
    "scalar subquery": "SELECT id, amount - (SELECT avg(amount) FROM orders) AS above FROM orders WHERE customer = 4",
    "correlated subquery": (
        "SELECT c.id, (SELECT sum(amount) FROM orders o WHERE o.customer = c.id) AS s FROM customers c"
    ),
    "distinct": "SELECT DISTINCT customer, page FROM clicks",
    "distinct on": (
        "SELECT DISTINCT ON (customer) customer, id, amount FROM orders ORDER BY customer, amount DESC NULLS LAST, id"
    ),
    "union all": "SELECT customer FROM orders UNION ALL SELECT id FROM customers",
    "union": "SELECT customer AS x FROM orders UNION SELECT id FROM customers WHERE region = 'r2'",
    "union of types": (
        "SELECT customer AS x, placed AS d FROM orders EXCEPT SELECT id::numeric, now_.t FROM customers,"
        " (VALUES (timestamp '2024-01-03')) now_(t)"
    ),
    "intersect": "SELECT customer FROM clicks INTERSECT SELECT id FROM customers",
    "intersect all": "SELECT customer FROM clicks INTERSECT ALL SELECT customer FROM orders",
    "except all": "SELECT customer FROM clicks EXCEPT ALL SELECT customer FROM orders WHERE amount > 9",
    "with": "WITH big AS (SELECT * FROM orders WHERE amount > 8) SELECT a.id FROM big a JOIN big b ON a.id = b.id + 1",
    "two stages": (
        "SELECT n, count(*) AS c FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x GROUP BY n"
    ),
    "three stages": """SELECT max(c) AS most FROM (SELECT n, count(*) AS c
        FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x GROUP BY n) y""",
    "a stage and its source": """SELECT o.id, t.s FROM orders o
        JOIN (SELECT customer, sum(amount) AS s FROM orders GROUP BY customer) t ON t.customer = o.customer""",
    "window": """SELECT id, rank() OVER w AS r, sum(amount) OVER (PARTITION BY customer) AS s,
        lag(amount) OVER (PARTITION BY customer ORDER BY id) AS before
        FROM orders WINDOW w AS (PARTITION BY customer ORDER BY amount)""",
    "numbered": """SELECT id, customer FROM (SELECT id, customer,
        row_number() OVER (PARTITION BY customer ORDER BY amount DESC NULLS LAST, id) AS n FROM orders) x
        WHERE n <= 2""",
    "running sum": """SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY placed, id ROWS 2 PRECEDING) AS s
        FROM orders""",
    "first rows": "SELECT id, amount FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 5",
    "first rows after others": "SELECT id FROM orders ORDER BY amount, id LIMIT 4 OFFSET 3",
    "first groups": "SELECT customer, count(*) AS n FROM orders GROUP BY customer ORDER BY n DESC, customer LIMIT 3",
    "case and arrays": """SELECT id, CASE WHEN amount > 10 THEN 'big' ELSE 'small' END AS size,
        customer = ANY (ARRAY[1, 2, 3]) AS few, id <> ALL (ARRAY[4, 5]) AS other FROM orders""",
    "values": (
        "SELECT v.word, o.id FROM (VALUES (1, 'one'), (2, 'two')) AS v(n, word) LEFT JOIN orders o ON o.customer = v.n"
    ),
}
STATEMENTS = (
    "INSERT INTO orders VALUES (100, 3, 11.5, '2024-01-05', NULL)",
    "INSERT INTO orders SELECT n, n % 15, n / 10.0, date '2024-01-01' + n % 9, 'r2' FROM generate_series(101, 140) n",
    "UPDATE orders SET amount = amount + 3 WHERE id = 7",
    "UPDATE orders SET customer = NULL, note = NULL WHERE id % 11 = 0",
    "UPDATE orders SET customer = coalesce(customer, 0) + 1, amount = 90 - amount WHERE id % 5 = 1",
    "UPDATE orders SET note = note",
    "DELETE FROM orders WHERE id = 100",
    "DELETE FROM orders WHERE id % 7 = 3",
    "INSERT INTO customers VALUES (13, 'new', 'r1'), (14, 'newer', NULL)",
    "UPDATE customers SET region = 'r2', id = id + 100 WHERE id IN (3, 5)",
    "DELETE FROM customers WHERE id IN (1, 2, 103)",
    "INSERT INTO clicks VALUES (4, 'p1'), (4, 'p1'), (NULL, NULL)",
    "UPDATE clicks SET page = 'p9' WHERE ctid = (SELECT min(ctid) FROM clicks WHERE customer = 2)",
    "DELETE FROM clicks WHERE ctid IN (SELECT ctid FROM clicks WHERE customer IN (2, 4) ORDER BY ctid LIMIT 4)",
    "UPDATE clicks SET customer = customer + 1",
    "TRUNCATE clicks",
    "INSERT INTO clicks VALUES (6, 'p1')",
    "DELETE FROM customers",
    "DELETE FROM orders",
    "INSERT INTO orders VALUES (1, 1, 1, '2024-01-01', '')",
)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_after_every_statement_the_result_is_that_of_the_query(shop: Story, query: str) -> None:
    shop.install("result", query)
    shop.run(*STATEMENTS)


def test_many_stream_tables_over_the_same_sources(shop: Story) -> None:
    for name in ("sums", "three tables", "left join", "two stages", "first rows", "not in"):
        shop.install(name, QUERIES[name])
    shop.run(*STATEMENTS)


def test_changes_of_many_rows_are_planned_by_themselves(shop: Story) -> None:
    for name in ("sums", "inner join", "two stages"):
        shop.install(name, QUERIES[name])
    shop.run(
        "INSERT INTO orders SELECT n, n % 15, n % 31, NULL, NULL FROM generate_series(1000, 6000) n",
        "INSERT INTO orders VALUES (7000, 3, 5, NULL, NULL)",
        "UPDATE orders SET amount = amount + 1, customer = customer + 1 WHERE id >= 1000",
        "DELETE FROM orders WHERE id BETWEEN 1000 AND 5000",
    )


def test_values_that_cannot_be_taken_out_of_a_sum(story: Story) -> None:
    story.connection.execute("CREATE TABLE t (k int, n numeric, f float8, r real, i int)")
    story.install("sums", "SELECT k, sum(n) AS n, avg(n) AS a, sum(f) AS f, sum(r) AS r, sum(i) AS i FROM t GROUP BY k")
    story.run(
        (
            "INSERT INTO t VALUES (1, 'NaN', 'Infinity', 1.5, -2147483648), (1, 2, 3, 4, 5), (2, 'Infinity',"
            " 'NaN', 'NaN', 1)"
        ),
        "DELETE FROM t WHERE n = 'NaN'",
        "UPDATE t SET n = '-Infinity', f = 1e300 WHERE k = 2",
        "UPDATE t SET n = 1, f = 2",
        "INSERT INTO t VALUES (1, 1e40, 1e-300, 0, -2147483648)",
        "DELETE FROM t WHERE i < 0",
    )


def test_equal_values_of_other_looks(story: Story) -> None:
    story.connection.execute("CREATE TABLE t (n numeric, f float8)")
    story.install("groups", "SELECT n, f, count(*) AS c FROM t GROUP BY n, f")
    story.install("listed", "SELECT n, f FROM t")
    story.run(
        "INSERT INTO t VALUES (1.0, 0.0), (1.00, '-0'), (NULL, 'NaN'), (NULL, 'NaN')",
        "DELETE FROM t WHERE ctid = (SELECT max(ctid) FROM t)",
        "DELETE FROM t WHERE n = 1",
    )
