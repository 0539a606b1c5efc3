"""Two zeros are equal, and one group, and yet different texts: who compares the texts gets the rows of each."""

from __future__ import annotations

import pytest

from trickle import Trickle
from trickle.testing import check


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE CAST(b.y AS STRING) = a.x)",
        "SELECT a.x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE CAST(b.y AS STRING) = a.x)",
        "SELECT a.x, b.n FROM a LEFT JOIN b ON CAST(b.y AS STRING) = a.x",
        "SELECT a.x, b.n FROM a LEFT JOIN b ON b.y = CAST(a.x AS DOUBLE)",
        "SELECT a.x FROM a WHERE CAST(a.x AS DOUBLE) NOT IN (SELECT y FROM b)",
    ],
)
def test_zeros(t: Trickle, query: str) -> None:
    t.sql("CREATE TABLE a (x STRING)")
    t.sql("CREATE TABLE b (y DOUBLE, n INT)")
    t.sql("INSERT INTO a VALUES ('0.0'), ('-0.0'), ('1.0')")
    t.sql("INSERT INTO b VALUES (1.0, 1)")
    t.create_stream_table("s", query, refresh_mode="DIFFERENTIAL")
    check(t)
    for statement in (
        "INSERT INTO b VALUES (-0.0D, 2)",
        "INSERT INTO b VALUES (0.0D, 3), (0.0D, 3)",
        "DELETE FROM b WHERE CAST(y AS STRING) = '-0.0'",
        "DELETE FROM b WHERE n = 3",
        "INSERT INTO b VALUES (-0.0D, 4), (0.0D, 5)",
        "UPDATE b SET y = -y WHERE n = 5",
    ):
        t.sql(statement)
        t.refresh_stream_table("s")
        check(t)
