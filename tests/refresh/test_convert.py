"""The conversions that are written into comparisons are those that Spark makes."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from trickle import Trickle
from trickle.engine import Engine
from trickle.sql.rewrites.convert import common_type
from trickle.sql.rewrites.kinds import plain
from trickle.testing import check

TYPES = (
    *("tinyint", "smallint", "int", "bigint", "decimal(10,2)", "decimal(38,0)", "float", "double"),
    *("string", "date", "timestamp", "timestamp_ntz", "boolean"),
)
_EXACT = {"tinyint", "smallint", "int", "bigint", "decimal"}


def compared_as(engine: Engine, left: str, right: str) -> tuple[str, str] | None:
    """The types that both sides have when Spark compares them; None when it refuses to."""
    given = f"SELECT CAST(NULL AS {left}) AS a, CAST(NULL AS {right}) AS b"
    ((plan,),) = engine.sql(f"EXPLAIN EXTENDED SELECT a = b AS c FROM ({given})").collect()
    if "DATATYPE_MISMATCH" in plan:
        return None
    casts = dict(re.findall(r"cast\((a|b)#\d+L? as ([a-z_]+(?:\(\d+,\d+\))?)\)", plan))
    return plain(casts.get("a", left)) or "", plain(casts.get("b", right)) or ""


@pytest.mark.parametrize("pair", list(combinations(TYPES, 2)), ids=" ".join)
def test_values_are_compared_as_spark_compares_them(engine: Engine, pair: tuple[str, str]) -> None:
    left, right = pair
    mine = common_type(plain(left) or "", plain(right) or "")
    assert mine == common_type(plain(right) or "", plain(left) or "")
    sides = compared_as(engine, left, right)
    if sides is None:
        assert mine is None
    elif {plain(left), plain(right)} <= _EXACT:
        # These are kept apart by any conversion among them.
        assert mine is None
        assert set(sides) <= _EXACT
    else:
        assert {mine} == set(sides)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT q.n, (SELECT count(*) FROM g WHERE g.k = q.k) AS m FROM q",
        "SELECT q.n, (SELECT max(n) FROM g WHERE upper(g.k) = q.k) AS m FROM q",
        "SELECT q.n, (SELECT max(n) FROM g WHERE g.k = abs(q.k)) AS m FROM q",
        "SELECT q.n, (SELECT sum(n) FROM g WHERE g.k = pmod(q.k, 10)) AS m FROM q",
        "SELECT q.n, q.k = 5 OR q.k IN (SELECT k FROM g) AS m FROM q",
        "SELECT q.n, q.k = 5 OR pmod(q.k, 10) IN (SELECT k FROM g) AS m FROM q",
        "SELECT q.n, (SELECT count(*) FROM g WHERE g.k = coalesce(q.k, 0.5)) AS m FROM q",
        "SELECT q.n FROM q WHERE q.k NOT IN (SELECT k FROM g WHERE k IS NOT NULL)",
        "SELECT q.n, x.m FROM q JOIN (SELECT k, count(*) AS m FROM g GROUP BY k) x ON x.k = q.k",
        "SELECT g.n, x.n AS m FROM g LEFT JOIN (SELECT q.k, h.n FROM q JOIN h ON h.k = q.k) x ON x.k = g.k",
        "WITH y AS (SELECT k + 0 AS k FROM q) SELECT g.n, h.n AS m FROM g JOIN y ON y.k = g.k JOIN h ON h.k = y.k",
    ],
)
def test_texts_that_are_the_same_number_match_alike(t: Trickle, query: str) -> None:
    for name, kind in (("q", "INT"), ("g", "STRING"), ("h", "STRING")):
        t.sql(f"CREATE TABLE {name} (k {kind}, n INT)")
    t.sql("INSERT INTO q VALUES (1, 1), (5, 2)")
    t.sql("INSERT INTO g VALUES ('1', 1), ('01', 2), ('9', 3), (NULL, 4)")
    t.sql("INSERT INTO h VALUES ('05', 7), ('5', 8)")
    t.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    check(t)
    for statement in (
        "INSERT INTO g VALUES ('5', 5), ('005', 6)",
        "INSERT INTO q VALUES (9, 3)",
        "DELETE FROM g WHERE k = '01'",
        "UPDATE h SET n = n + 1",
        "DELETE FROM q WHERE k = 5",
    ):
        t.sql(statement)
        t.refresh_stream_table("s")
        check(t)
