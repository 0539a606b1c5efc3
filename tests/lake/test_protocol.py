from __future__ import annotations

import json

import pytest

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add, schema
from trickle.errors import UnsupportedTable
from trickle.lake.snapshot import open_snapshot


@pytest.mark.parametrize(
    "feature", ["typeWidening", "typeWidening-preview", "variantType", "catalogManaged", "madeUpFeature"]
)
def test_a_reader_feature_that_is_not_read_is_refused_by_its_name(foreign: MakeForeign, feature: str) -> None:
    table = foreign(features=["deletionVectors", feature])
    with pytest.raises(UnsupportedTable, match=feature):
        open_snapshot(table.location)


def test_every_unknown_feature_is_named(foreign: MakeForeign) -> None:
    table = foreign(features=["alpha", "beta"])
    with pytest.raises(UnsupportedTable, match=r"alpha.*beta"):
        open_snapshot(table.location)


def test_a_reader_version_of_the_future_is_refused(foreign: MakeForeign) -> None:
    table = foreign(reader_version=4)
    with pytest.raises(UnsupportedTable, match="reader version 4"):
        open_snapshot(table.location)


@pytest.mark.parametrize("feature", ["deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"])
def test_features_that_are_read_are_let_in(foreign: MakeForeign, feature: str) -> None:
    assert open_snapshot(foreign(features=[feature]).location).version == 0


@pytest.mark.parametrize("mode", ["name", "id"])
def test_trap_column_mapping_is_refused_not_read_as_nulls(foreign: MakeForeign, mode: str) -> None:
    mapped = json.loads(schema("id long").json())
    mapped["fields"][0]["metadata"] = {
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "col-1234",
    }
    table = foreign(json.dumps(mapped), reader_version=2, properties={"delta.columnMapping.mode": mode})
    table.commit(add(table.write("part-0.parquet", {"col-1234": [1, 2]}), rows=2))
    with pytest.raises(UnsupportedTable, match="columnMapping"):
        open_snapshot(table.location)


def test_column_mapping_that_is_listed_but_off_is_let_in(foreign: MakeForeign) -> None:
    table = foreign(features=["columnMapping"], properties={"delta.columnMapping.mode": "none"})
    assert open_snapshot(table.location).version == 0


def test_a_table_of_other_files_than_parquet_is_refused(foreign: MakeForeign) -> None:
    table = foreign(first_commit=False)
    metadata = table.metadata("id long")
    metadata["metaData"]["format"]["provider"] = "orc"
    table.commit(table.protocol, metadata)
    with pytest.raises(UnsupportedTable, match="orc"):
        open_snapshot(table.location)


def test_a_type_that_spark_does_not_know_is_refused(foreign: MakeForeign) -> None:
    strange = schema("id long").json().replace('"long"', '"quaternion"')
    with pytest.raises(UnsupportedTable, match="quaternion"):
        open_snapshot(foreign(strange).location)
