from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import SourceTable, describe
from trickle.replicas.shape import anew, difference, from_json, lake_names, to_json, usable


@given(st.lists(st.text(st.sampled_from("aA b,=("), min_size=1, max_size=4), unique=True))
def test_names_for_the_lake_are_storable_and_different(columns: list[str]) -> None:
    found = lake_names(columns)
    assert len({name.lower() for name in found}) == len(columns)
    assert not set("".join(found)) & set(" ,;{}()=")
    plain = [name for name in columns if not set(name) & set(" ,(=")]
    if len({name.lower() for name in columns}) == len(columns) == len(plain):
        assert found == columns


def table(connection: Connection) -> SourceTable:
    connection.execute("CREATE TYPE public.mood AS ENUM ('sad')")
    connection.execute(
        "CREATE TABLE public.t (id int PRIMARY KEY, spare int, n numeric(5,1)[], m public.mood, d public.mood[])"
    )
    return describe(connection, "public", "t")


def test_a_shape_survives_its_json(dsn: str) -> None:
    with connected(dsn) as connection:
        found = table(connection)
    assert from_json(found.oid, found.schema, found.name, to_json(found)) == found


def test_what_changed_is_told_by_number(dsn: str) -> None:
    with connected(dsn) as connection:
        known = table(connection).with_columns(["id", "m"])
        for ddl, words in [
            ("DROP COLUMN spare, ADD COLUMN more int", None),
            ("RENAME COLUMN m TO mood", "column 'm' was renamed to 'mood'"),
            ("ALTER COLUMN mood TYPE text", "column 'm' was renamed to 'mood'"),
            ("DROP COLUMN mood", "column 'm' was dropped"),
        ]:
            connection.execute(f"ALTER TABLE public.t {ddl}")
            now = describe(connection, "public", "t")
            drift = difference(known, now)
            assert (drift.words if drift else None) == words
        assert [column.name for column in anew(known, now).columns] == ["id"]


def test_another_type_is_told_with_both(dsn: str) -> None:
    with connected(dsn) as connection:
        known = usable(table(connection))
        connection.execute("ALTER TABLE public.t ALTER COLUMN id TYPE bigint")
        drift = difference(known, describe(connection, "public", "t"))
    assert drift is not None
    assert drift.words == "column 'id' was integer and is bigint"
    assert drift.in_columns
    moved = difference(known, replace(known, parts=()))
    assert moved is not None
    assert not moved.in_columns
