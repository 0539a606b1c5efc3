from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tests.cli.runner import Cli


def test_tables_of_every_kind_are_listed(shop: Cli) -> None:
    kinds = {row["name"]: row["kind"] for row in shop.document("tables")}
    assert kinds == {"grand": "STREAM_TABLE", "orders": "TABLE", "paid": "VIEW", "per_customer": "STREAM_TABLE"}
    reads = {(row["name"], row["source"]) for row in shop.document("dependencies")}
    assert {("paid", "orders"), ("per_customer", "paid"), ("grand", "per_customer")} <= reads


def test_an_empty_warehouse_says_what_to_type(cli: Cli) -> None:
    assert cli("tables").out == 'no tables yet: trickle sql "CREATE TABLE ..."\n'
    assert cli("dependencies").out == "no view or stream table yet\n"


def test_rows_are_printed_up_to_the_limit(shop: Cli) -> None:
    assert shop("table", "orders", "--limit", "2").out.splitlines()[-1].startswith("first 2 rows, there are more")
    assert shop("table", "orders", "--limit", "3").out.splitlines()[-1] == "3 rows"
    assert len(shop.document("table", "orders", "--limit", "0")) == 3
    assert {"id": 2, "customer": "bob", "amount": "5.50"} in shop.document("table", "orders")


def test_a_table_is_read_as_it_was(shop: Cli) -> None:
    assert shop.document("table", "orders", "--version", "0") == []
    gone = shop("table", "orders", "--version", "99", "--json")
    assert gone.code != 0
    assert gone.error["code"]


def test_columns_are_described_without_spark_jobs(shop: Cli) -> None:
    columns = {row["name"]: row["type"] for row in shop.document("describe", "orders")}
    assert columns == {"id": "bigint", "customer": "string", "amount": "decimal(12,2)"}
    whole = shop.document("describe", "per_customer", "--extended")
    assert [column["name"] for column in whole["columns"]] == ["customer", "total"]
    assert whole["facts"]["kind"] == "STREAM_TABLE"
    assert whole["facts"]["rows"] == "3"


def test_a_misspelt_name_is_met_with_the_nearest(shop: Cli) -> None:
    for line in (["table", "ordres"], ["describe", "ordres"], ["drop", "ordres"]):
        ran = shop(*line)
        assert ran.code == 2
        assert ran.err.splitlines()[-1] == "hint: did you mean orders?"


def test_drop_finds_out_what_it_is(shop: Cli) -> None:
    refused = shop("drop", "orders")
    assert refused.code == 2
    assert "[DEPENDENTS_EXIST]" in refused.err
    assert shop("drop", "grand").out == "dropped grand\n"
    assert shop("drop", "per_customer").code == 0
    assert shop("drop", "paid").code == 0
    assert shop("drop", "orders").code == 0
    assert shop.document("tables") == []
    assert shop("drop", "orders", "--if-exists").code == 0


def test_drop_cascades(shop: Cli) -> None:
    assert shop("drop", "paid", "--cascade").code == 0
    assert [row["name"] for row in shop.document("tables")] == ["orders"]


def test_a_delta_table_of_others_is_attached(cli: Cli, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "events"), pa.table({"n": [1, 2]}))
    assert cli("attach", "events", str(tmp_path / "events")).out == "attached events\n"
    assert [column["name"] for column in cli.document("describe", "events")] == ["n"]
    assert cli("attach", "more", str(tmp_path / "nothing")).code == 2
