"""DESCRIBE and SHOW TABLES."""

from __future__ import annotations

from tests.scenarios.story import folder, listed, refused
from trickle.api import Trickle
from trickle.errors import UnknownTable


def test_describe_lists_columns_of_everything(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id BIGINT, name STRING COMMENT 'of the thing', PRIMARY KEY (id))")
    t.sql("CREATE VIEW v AS SELECT upper(name) AS big FROM a")
    t.sql("CREATE STREAM TABLE s AS SELECT count(*) AS n FROM a")
    assert [(c.name, c.type, c.nullable, c.primary_key, c.comment) for c in t.describe("a")] == [
        ("id", "bigint", False, True, None),
        ("name", "string", True, False, "of the thing"),
    ]
    assert [(c.name, c.type) for c in t.describe("v")] == [("big", "string")]
    assert [(c.name, c.type) for c in t.describe("s")] == [("n", "bigint")]
    assert [c.name for c in t.describe("trickle.settings")] == ["name", "value", "default", "meaning"]
    refused(t, "DESCRIBE b", UnknownTable, "no table is called b")


def test_describe_extended_adds_what_catalog_and_log_know(t: Trickle) -> None:
    t.sql("CREATE TABLE a (id BIGINT) TBLPROPERTIES ('team' = 'shop'); INSERT INTO a VALUES (1), (2)")
    t.sql("DELETE FROM a WHERE id = 1; CREATE STREAM TABLE s WITH (schedule = '5s') AS SELECT id FROM a")
    facts = {row["name"]: row["type"] for row in listed(t, "DESCRIBE EXTENDED a")}
    assert facts["id"] == "bigint"
    assert facts["# kind"] == "TABLE"
    assert facts["# rows"] == "1"
    assert facts["# version"] == "2"
    assert facts["# location"] == str(folder(t, "a"))
    assert facts["# property team"] == "shop"
    stream = {row["name"]: row["type"] for row in listed(t, "DESCRIBE EXTENDED s")}
    assert (stream["# status"], stream["# schedule"], stream["# query"]) == ("ACTIVE", "5s", "SELECT id FROM a")


def test_show_tables_by_schema_and_pattern(t: Trickle) -> None:
    t.sql("CREATE TABLE orders (x INT); CREATE TABLE shop.orders (x INT); CREATE TABLE shop.lines (x INT)")
    t.sql("CREATE VIEW shop.order_view AS SELECT x FROM orders; CREATE STREAM TABLE shop.kept AS SELECT x FROM orders")
    assert listed(t, "SHOW TABLES") == [
        {"schema": "default", "name": "orders", "kind": "TABLE"},
        {"schema": "shop", "name": "kept", "kind": "STREAM_TABLE"},
        {"schema": "shop", "name": "lines", "kind": "TABLE"},
        {"schema": "shop", "name": "order_view", "kind": "VIEW"},
        {"schema": "shop", "name": "orders", "kind": "TABLE"},
    ]
    assert [row["name"] for row in listed(t, "SHOW TABLES IN shop LIKE 'order%'")] == ["order_view", "orders"]
    assert [row["name"] for row in listed(t, "SHOW TABLES FROM SHOP LIKE '*IN*'")] == ["lines"]
    assert listed(t, "SHOW TABLES IN nowhere") == []
