"""A part of a query that has nothing to say keeps its types: what is left of the query is what it was."""

from __future__ import annotations

import pytest

from trickle import Trickle
from trickle.testing import check

QUERIES = {
    "union": "SELECT id, CAST(v AS STRING) AS s FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b)",
    "union and distinct": "SELECT CAST(v AS STRING) AS s FROM (SELECT v FROM a UNION SELECT v FROM b)",
    "union of texts": "SELECT id, v FROM (SELECT id, v FROM a UNION ALL SELECT id, w AS v FROM b)",
    "division": "SELECT id, v / 3 AS s FROM (SELECT id, v FROM b UNION ALL SELECT id, x AS v FROM b WHERE id > 100)",
    "left join": "SELECT a.id, CAST(coalesce(b.v, a.v) AS STRING) AS s FROM a LEFT JOIN b ON b.id = a.id",
    "field of the right": "SELECT a.id, b.st.x AS x, b.arr[0] AS y FROM a LEFT JOIN b ON b.id = a.id",
    "full join": "SELECT CAST(coalesce(b.v, a.v) AS STRING) AS s FROM a FULL JOIN b ON b.id = a.id",
    "null asked for": (
        "SELECT id, CAST(v AS STRING) AS s FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b WHERE id IS NULL)"
    ),
    "left join on null": "SELECT a.id, CAST(coalesce(b.v, a.v) AS STRING) AS s FROM a LEFT JOIN b ON a.id IS NULL",
    "field of a right that is nothing": "SELECT a.id, b.st.x AS x, b.arr[0] AS y FROM a LEFT JOIN b ON a.id IS NULL",
    "generator": (
        "SELECT x.id, e.col FROM (SELECT a.id, b.arr FROM a LEFT JOIN b ON a.id IS NULL) x"
        " LATERAL VIEW OUTER explode(x.arr) e AS col"
    ),
    "aggregate": (
        "SELECT CAST(coalesce(sum(v), 0) AS STRING) AS s FROM (SELECT v FROM a UNION ALL SELECT v FROM b) WHERE v > 100"
    ),
    "window": (
        "SELECT id, CAST(sum(v) OVER (PARTITION BY id % 2) AS STRING) AS s"
        " FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b)"
    ),
    "subquery": "SELECT id, CAST((SELECT max(b.v) FROM b WHERE b.id = a.id) AS STRING) AS s FROM a",
    "set operations": (
        "SELECT CAST(v AS STRING) AS s FROM (SELECT v FROM a EXCEPT SELECT v FROM b UNION ALL SELECT v FROM a"
        " INTERSECT ALL SELECT v FROM b)"
    ),
    "right of a right": (
        "SELECT a.id, CAST(coalesce(x.v, a.v) AS STRING) AS s"
        " FROM a LEFT JOIN (SELECT b.id, c.v FROM b LEFT JOIN b c ON c.id = b.id + 1) x ON x.id = a.id"
    ),
    "grouping sets": (
        "SELECT CAST(id AS STRING) AS i, CAST(max(v) AS STRING) AS s FROM b GROUP BY GROUPING SETS ((id), ())"
    ),
    "recursion": (
        "WITH RECURSIVE t AS (SELECT id, CAST(v AS DECIMAL(10,1)) AS v FROM a WHERE id = 1 UNION ALL"
        " SELECT id + 1, CAST(t.v / 2 AS DECIMAL(10,1)) FROM t WHERE id < 4)"
        " SELECT id, CAST(v AS STRING) AS s FROM t"
    ),
}
CHANGES = (
    ("INSERT INTO a VALUES (2, 5)",),
    ("INSERT INTO b VALUES (2, 7.25, '7', 0.1D, named_struct('x', 3), array(4))",),
    ("UPDATE a SET v = v + 1 WHERE id = 1", "DELETE FROM b WHERE id = 2"),
    ("DELETE FROM a WHERE id = 2",),
    ("INSERT INTO a VALUES (NULL, 9)", "INSERT INTO b VALUES (NULL, 200.5, '20', NULL, NULL, NULL)"),
)


@pytest.mark.parametrize("in_full", [False, True])
def test_types_stay_what_they_are_in_the_query(t: Trickle, in_full: bool) -> None:
    t.sql("CREATE TABLE a (id INT, v INT); INSERT INTO a VALUES (1, 1), (3, 2)")
    t.sql("CREATE TABLE b (id INT, v DECIMAL(10,2), w STRING, x DOUBLE, st STRUCT<x: INT>, arr ARRAY<INT>)")
    t.sql("INSERT INTO b VALUES (1, 1.5, '12', 0.5D, named_struct('x', 1), array(1, 2))")
    names = {name.replace(" ", "_"): query for name, query in QUERIES.items()}
    for name, query in names.items():
        t.create_stream_table(name, query, refresh_mode="AUTO" if in_full else "DIFFERENTIAL")
    check(t)
    for statements in CHANGES:
        for statement in statements:
            t.sql(statement)
        for name in names:
            done = t.refresh_stream_table(name, force=in_full)
            assert done.action == "FULL" if in_full else done.action in ("DIFFERENTIAL", "NO_DATA"), name
        check(t)
