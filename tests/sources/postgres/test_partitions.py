"""Sources of several tables: partitions and inheritance, under WAL capture."""

from __future__ import annotations

import psycopg
import pytest

from tests.sources.postgres.small_lake import SmallLake
from trickle.errors import SourceRefused


@pytest.fixture
def events(user: psycopg.Connection) -> str:
    user.execute("CREATE TABLE events (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)")
    user.execute("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10)")
    user.execute("CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id)")
    user.execute("CREATE TABLE events_2_rest PARTITION OF events_2 DEFAULT")
    user.execute("INSERT INTO events VALUES (1, 1, 'a'), (2, 11, 'b'), (3, 12, 'c')")
    return "events"


def test_partitions_are_one_source(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    lake.attach(events)
    user.execute("INSERT INTO events VALUES (4, 4, 'd'), (5, 15, 'e')")
    user.execute("INSERT INTO events_1 VALUES (6, 6, 'straight into it')")
    user.execute("UPDATE events SET v = 'x' WHERE id = 1")
    user.execute("UPDATE events SET day = 5 WHERE id = 2")
    user.execute("DELETE FROM events_2 WHERE id = 3")
    lake.ingest()
    lake.check()


def test_a_partition_that_is_created_needs_nothing(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    lake.attach(events)
    user.execute("CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (20) TO (30)")
    user.execute("CREATE TABLE events_2_7 PARTITION OF events_2 FOR VALUES IN (7)")
    user.execute("INSERT INTO events VALUES (9, 25, 'new'), (7, 17, 'new too')")
    lake.ingest()
    lake.check()


def test_columns_of_a_partition_may_have_another_order(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    user.execute("CREATE TABLE odd (v text, gone int, day int NOT NULL, id int NOT NULL)")
    user.execute("ALTER TABLE odd DROP gone")
    user.execute("ALTER TABLE events ATTACH PARTITION odd FOR VALUES FROM (20) TO (30)")
    lake.attach(events)
    user.execute("INSERT INTO events VALUES (9, 25, 'odd'), (8, 2, 'even')")
    user.execute("UPDATE events SET day = 26 WHERE id = 8")
    lake.ingest()
    lake.check()


def test_a_partition_that_brings_rows_along_is_noticed(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    lake.attach(events)
    user.execute("CREATE TABLE full_one (LIKE events)")
    user.execute("INSERT INTO full_one VALUES (50, 25, 'x')")
    user.execute("ALTER TABLE events ATTACH PARTITION full_one FOR VALUES FROM (20) TO (30)")
    assert dict(lake.peek())["events"].schema_changed == "its part 'full_one' was attached"


def test_so_are_rows_in_a_partition_of_what_is_attached(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    lake.attach(events)
    user.execute("CREATE TABLE tree (LIKE events) PARTITION BY LIST (id)")
    user.execute("CREATE TABLE leaf PARTITION OF tree DEFAULT")
    user.execute("INSERT INTO tree VALUES (50, 25, 'x')")
    user.execute("ALTER TABLE events ATTACH PARTITION tree FOR VALUES FROM (20) TO (30)")
    assert dict(lake.peek())["events"].schema_changed == "its part 'leaf' was attached"


@pytest.mark.parametrize("statement", ["DROP TABLE events_1", "ALTER TABLE events DETACH PARTITION events_1"])
def test_rows_that_go_with_their_partition_are_noticed(
    lake: SmallLake, user: psycopg.Connection, events: str, statement: str
) -> None:
    lake.attach(events)
    user.execute(statement)
    assert dict(lake.peek())["events"].schema_changed == "its part 'events_1' was detached or dropped"


@pytest.mark.parametrize(
    "branch, bounds, leaf",
    [("events_1", "FROM (0) TO (10)", "events_1"), ("events_2", "FROM (10) TO (20)", "events_2_rest")],
)
def test_what_is_written_to_a_partition_while_it_is_detached_is_noticed(
    lake: SmallLake, user: psycopg.Connection, events: str, branch: str, bounds: str, leaf: str
) -> None:
    lake.attach(events)
    with user.transaction():
        user.execute(f"ALTER TABLE events DETACH PARTITION {branch}")
        user.execute(f"UPDATE {leaf} SET v = 'unseen'")
        user.execute(f"ALTER TABLE events ATTACH PARTITION {branch} FOR VALUES {bounds}")
    assert dict(lake.peek())["events"].schema_changed == f"its part '{leaf}' was detached, and attached again"
    lake.attach(events)
    user.execute("UPDATE events SET v = 'seen'")
    lake.ingest()
    lake.check()


def test_all_partitions_may_be_truncated(lake: SmallLake, user: psycopg.Connection, events: str) -> None:
    lake.attach(events)
    user.execute("TRUNCATE events")
    user.execute("INSERT INTO events VALUES (1, 1, 'again')")
    assert lake.ingest()["events"].truncated
    lake.check()


def test_a_single_partition_that_is_truncated_is_noticed(
    lake: SmallLake, user: psycopg.Connection, events: str
) -> None:
    lake.attach(events)
    user.execute("TRUNCATE events_1")
    assert dict(lake.peek())["events"].schema_changed == "of its parts, events_1 was truncated and others were not"


def test_a_key_of_one_partition_is_no_key_of_the_source(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE p (id int NOT NULL, day int) PARTITION BY LIST (day)")
    user.execute("CREATE TABLE p1 PARTITION OF p (PRIMARY KEY (id)) FOR VALUES IN (1)")
    user.execute("CREATE TABLE p2 PARTITION OF p (PRIMARY KEY (id)) FOR VALUES IN (2)")
    with pytest.raises(SourceRefused) as caught:
        lake.attach("p")
    assert caught.value.detail == "the key of public.p1 does not identify a row of all of public.p"
    user.execute("ALTER TABLE p1 REPLICA IDENTITY FULL; ALTER TABLE p2 REPLICA IDENTITY FULL")
    lake.attach("p")
    user.execute("INSERT INTO p VALUES (1, 1), (1, 2)")
    user.execute("DELETE FROM p WHERE day = 1")
    lake.ingest()
    lake.check()


def test_whole_rows_of_one_partition_and_keys_of_another(
    lake: SmallLake, user: psycopg.Connection, events: str
) -> None:
    user.execute("ALTER TABLE events_1 REPLICA IDENTITY FULL")
    lake.attach(events)
    user.execute("UPDATE events SET v = v || '!'")
    user.execute("DELETE FROM events WHERE id = 1")
    user.execute("UPDATE events SET day = 3 WHERE id = 2")
    lake.ingest()
    lake.check()


def test_tables_that_inherit_are_part_of_the_source(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE base (id int, v text)")
    user.execute("CREATE TABLE more (extra int) INHERITS (base)")
    user.execute("ALTER TABLE base REPLICA IDENTITY FULL; ALTER TABLE more REPLICA IDENTITY FULL")
    user.execute("INSERT INTO base VALUES (1, 'a'); INSERT INTO more VALUES (1, 'a', 7)")
    lake.attach("base")
    user.execute("INSERT INTO more VALUES (2, 'b', 8)")
    user.execute("UPDATE base SET v = 'c' WHERE id = 1")
    lake.ingest()
    lake.check()
    user.execute("CREATE TABLE third () INHERITS (base)")
    assert dict(lake.peek())["base"].schema_changed == "'third' inherits from it now"
    user.execute("ALTER TABLE third REPLICA IDENTITY FULL")
    lake.attach("base")
    user.execute("INSERT INTO third VALUES (3, 'd')")
    lake.ingest()
    lake.check()
