"""Weighted rows against a real table: after any changes it holds the multiset that they add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.postgres import Postgres
from trickle.algebra.weights import WEIGHT
from trickle.errors import InvalidData, NegativeMultiplicity
from trickle.postgres.connect import Connection, connected
from trickle.publish.positions import settle
from trickle.publish.shape import create_target, find_target
from trickle.publish.target import Applied, Target
from trickle.publish.types import Column

COLUMNS = (Column("id", "integer"), Column("Odd \"na'me", "text"), Column("rate", "double precision"))
Row = tuple[int | None, str | None, float | None]


def batch(rows: list[tuple[Row, int]]) -> pa.Table:
    kinds = (pa.int32(), pa.string(), pa.float64())
    columns = {c.name: pa.array([row[i] for row, _ in rows], kinds[i]) for i, c in enumerate(COLUMNS)}
    return pa.table({**columns, WEIGHT: pa.array([weight for _, weight in rows], pa.int64())})


@contextmanager
def made(connection: Connection, key: tuple[str, ...] = ()) -> Iterator[Target]:
    connection.execute('DROP SCHEMA IF EXISTS "S p" CASCADE; CREATE SCHEMA "S p"')
    create_target(connection, "S p", "T.x", COLUMNS, key)
    table = find_target(connection, "S p", "T.x")
    assert table is not None
    target = Target(connection, table, COLUMNS)
    target.index("trickle_rows_test")
    yield target


def change(target: Target, rows: list[tuple[Row, int]], *, against_all: bool = False) -> Applied:
    with target.connection.transaction():
        settle(target.connection)
        target.take([batch(rows[:2]), batch(rows[2:])], against_all=against_all)
        return target.apply()


def contents(target: Target) -> Counter[tuple[Any, ...]]:
    return Counter(target.connection.execute('SELECT * FROM "S p"."T.x"').fetchall())


def test_rows_without_a_key_are_counted(connection: Connection) -> None:
    with made(connection) as target:
        twin: Row = (1, "a\tb\\N\n\\.\n", None)
        assert change(target, [(twin, 1), (twin, 2), ((None, None, None), 1)]) == Applied(4, 0)
        assert contents(target) == {twin: 3, (None, None, None): 1}
        assert change(target, [(twin, -2), ((None, None, None), -1), ((2, "", 0.0), 1)]) == Applied(1, 3)
        assert contents(target) == {twin: 1, (2, "", 0.0): 1}
        with pytest.raises(NegativeMultiplicity, match="somebody else wrote"):
            change(target, [(twin, -2)])
        assert contents(target) == {twin: 1, (2, "", 0.0): 1}, "all of a change or nothing"


def test_what_comes_and_goes_again_is_no_change(connection: Connection) -> None:
    with made(connection) as target:
        assert change(target, [((1, "x", 0.5), 1), ((1, "x", 0.5), -1)]) == Applied(0, 0)


def test_a_reload_touches_only_rows_that_differ(connection: Connection) -> None:
    with made(connection) as target:
        change(target, [((1, "kept", 1.0), 1), ((2, "gone", 2.0), 2)])
        connection.execute('INSERT INTO "S p"."T.x" VALUES (9, \'of somebody\', 0)')
        done = change(target, [((1, "kept", 1.0), 1), ((2, "gone", 2.0), 1), ((3, "new", 3.0), 1)], against_all=True)
        assert done == Applied(1, 2)
        assert contents(target) == {(1, "kept", 1.0): 1, (2, "gone", 2.0): 1, (3, "new", 3.0): 1}


def test_rows_with_a_key_are_updated_in_place(connection: Connection) -> None:
    with made(connection, ("id",)) as target:
        connection.execute('CREATE TABLE "S p".log (what text)')
        connection.execute(
            'CREATE FUNCTION "S p".note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN'
            ' INSERT INTO "S p".log VALUES (tg_op); RETURN NULL; END $$;'
            ' CREATE TRIGGER n AFTER INSERT OR UPDATE OR DELETE ON "S p"."T.x"'
            ' FOR EACH ROW EXECUTE FUNCTION "S p".note()'
        )
        change(target, [((1, "a", 1.0), 1), ((2, "b", 2.0), 1), ((3, "c", 3.0), 1)])
        done = change(target, [((1, "a", 1.0), -1), ((1, "a", 1.5), 1), ((2, "b", 2.0), -1), ((4, "d", 4.0), 1)])
        assert done == Applied(2, 2)
        assert contents(target) == {(1, "a", 1.5): 1, (3, "c", 3.0): 1, (4, "d", 4.0): 1}
        logged = Counter(connection.execute('SELECT what FROM "S p".log').fetchall())
        assert logged == {("INSERT",): 4, ("UPDATE",): 1, ("DELETE",): 1}
        with pytest.raises(NegativeMultiplicity):
            change(target, [((77, "x", 1.0), -1), ((77, "x", 2.0), 1)])
        with pytest.raises(InvalidData, match="not unique by the key"):
            change(target, [((1, "a", 1.5), -1), ((1, "b", 1.0), 1), ((1, "c", 1.0), 1)])


def test_values_that_rows_swap_do_not_meet_in_another_unique_index(connection: Connection) -> None:
    with made(connection, ("id",)) as target:
        connection.execute('CREATE UNIQUE INDEX ON "S p"."T.x" (rate)')
        change(target, [((1, "a", 1.0), 1), ((2, "b", 2.0), 1)])
        swap: list[tuple[Row, int]] = [((1, "a", 1.0), -1), ((2, "b", 2.0), -1), ((1, "a", 2.0), 1), ((2, "b", 1.0), 1)]
        assert change(target, swap) == Applied(2, 2)
        assert contents(target) == {(1, "a", 2.0): 1, (2, "b", 1.0): 1}


@pytest.fixture(scope="module")
def shared(postgres: Postgres) -> Iterator[Connection]:
    with postgres.database() as url, connected(url) as opened:
        yield opened


rows = st.tuples(
    st.none() | st.integers(0, 2),
    st.none() | st.sampled_from(["", "a", "\\N", "\t", "é🦆"]),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, float("inf")]),
)
stories = st.lists(st.lists(st.tuples(rows, st.integers(-2, 3)), min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stories)
def test_any_changes_add_up(shared: Connection, story: list[list[tuple[Row, int]]]) -> None:
    held: Counter[Row] = Counter()
    with made(shared) as target:
        for step in story:
            after = held.copy()
            for row, weight in step:
                after[row] += weight
            if min(after.values()) < 0:
                with pytest.raises(NegativeMultiplicity):
                    change(target, step)
                continue
            change(target, step)
            held = +after
            assert contents(target) == held


def test_a_single_row_is_found_without_reading_the_table(connection: Connection) -> None:
    with made(connection) as target:
        connection.execute('INSERT INTO "S p"."T.x" SELECT g, \'r\' || g % 7, g / 2.0 FROM generate_series(1, 20000) g')
        connection.execute('ANALYZE "S p"."T.x"')
        change(target, [((77, "r0", 38.5), -1), ((5, "r5", 2.5), -1), ((1, "new", 1.0), 1)])
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'trickle_rows_test'"
        ).fetchone()
        assert found == (2,)
