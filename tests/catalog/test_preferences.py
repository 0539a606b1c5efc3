from __future__ import annotations

from tests.catalog.given import Given
from tests.catalog.together import Workers
from trickle.catalog import Catalog, preferences


def test_settings_are_stored_changed_and_forgotten(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        assert preferences.stored(tx) == {}
        preferences.put(tx, "max_parse_depth", "80", given.now)
        preferences.put(tx, "block_source_ddl", "false", given.now)
        preferences.put(tx, "max_parse_depth", "90", given.later(1))
    with catalog.read() as tx:
        assert preferences.stored(tx) == {"block_source_ddl": "false", "max_parse_depth": "90"}
    with catalog.write() as tx:
        assert preferences.clear(tx, "max_parse_depth") is True
        assert preferences.clear(tx, "max_parse_depth") is False
        assert preferences.stored(tx) == {"block_source_ddl": "false"}


def test_processes_that_store_the_same_setting_do_not_collide(url: str, together: Workers) -> None:
    assert together("prefer", url, "max_parse_depth") == ["5"] * 4
