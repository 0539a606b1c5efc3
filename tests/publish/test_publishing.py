"""A stream table in PostgreSQL: equal to the one in the lake after every refresh, whatever is on the table there."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.postgres import Postgres
from tests.publish.stories import Session, build, lake, position, published
from trickle.api import Trickle
from trickle.catalog import publications, relations
from trickle.errors import (
    DependentsExist,
    DuplicateName,
    InvalidData,
    InvalidName,
    InvalidOption,
    SourceRefused,
    SourceUnreachable,
    TrickleError,
    UnknownColumn,
    UnknownTable,
    UserError,
)
from trickle.publish.bring import bring
from trickle.sql.names import table_name


def test_it_is_copied_and_follows_every_refresh(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    row = t.publish("totals", dsn)
    assert (row.table, row.status) == ("public.totals", "CURRENT")
    t.publish("amounts", dsn, table='public."All Amounts"')
    changes = (
        "INSERT INTO orders VALUES (5, 'eve', 7), (6, 'ada', 1)",
        "UPDATE orders SET amount = amount + 1 WHERE customer = 'ada'",
        "DELETE FROM orders WHERE id IN (1, 4)",
        "UPDATE orders SET customer = NULL WHERE id = 2",
        "TRUNCATE TABLE orders",
        "INSERT INTO orders VALUES (7, 'zoe', 1), (8, 'zoe', 1)",
    )
    for change in ("SELECT 1", *changes):
        t.sql(change)
        for name, table in (("totals", "totals"), ("amounts", '"All Amounts"')):
            t.refresh_stream_table(name)
            assert published(there, table) == lake(t, name)
    versions = {row.name: row.version for row in t.status()}
    assert position(there) == [
        ('"All Amounts"', "amounts", versions["amounts"]),
        ("totals", "totals", versions["totals"]),
    ]
    assert [row.status for row in t.list_publications()] == ["CURRENT", "CURRENT"]


def test_another_incarnation_with_the_same_version_is_another_one(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("totals", dsn)
    with t.warehouse.catalog.write() as tx:
        (before,) = publications.listing(tx)
        relations.update(tx, before.relation.id, now=t.warehouse.clock.now(), uid="f" * 32)
        there.execute("DELETE FROM totals WHERE customer = 'ada'")
    assert [row.status for row in t.list_publications()] == ["BEHIND"]
    # The publication as it was looked up before the stream table became another one.
    moved = bring(t.warehouse, before)
    assert (moved and moved.reloaded) == "the stream table is another one"
    assert published(there, "totals") == lake(t, "totals")
    assert [row.status for row in t.list_publications()] == ["CURRENT"]
    assert there.execute("SELECT uid FROM trickle_publish.positions").fetchone() == ("f" * 32,)


def test_what_the_user_made_on_it_stays_and_listeners_are_told(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("totals", dsn, table="public.totals")
    there.execute("CREATE INDEX by_total ON totals (total)")
    there.execute("DROP ROLE IF EXISTS reader")
    there.execute("CREATE ROLE reader; GRANT SELECT ON totals TO reader")
    there.execute("ALTER TABLE totals ENABLE ROW LEVEL SECURITY")
    there.execute("CREATE POLICY own ON totals FOR SELECT TO reader USING (customer = 'ada')")
    there.execute("CREATE TABLE audit (what text)")
    there.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO audit VALUES (tg_op); RETURN NULL; END $$;"
        " CREATE TRIGGER n AFTER INSERT OR DELETE ON totals FOR EACH ROW EXECUTE FUNCTION note()"
    )
    there.execute("LISTEN trickle_published")
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    t.refresh_stream_table("totals")
    assert published(there, "totals") == lake(t, "totals")
    assert published(there, "audit") == {("INSERT",): 1, ("DELETE",): 1}
    (told,) = there.notifies(timeout=5, stop_after=1)
    payload = json.loads(told.payload)
    assert (payload["name"], payload["inserted"], payload["deleted"]) == ("totals", 1, 1)
    assert payload["version"] == t.list_publications()[0].version
    there.execute("SET ROLE reader")
    assert len(published(there, "totals")) == 1, "the policy shows one customer"
    there.execute("RESET ROLE")
    assert there.execute("SELECT count(*) FROM pg_indexes WHERE indexname = 'by_total'").fetchone() == (1,)
    there.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_server_that_was_away_is_caught_up_with(t: Trickle, there: Session, dsn: str, postgres: Postgres) -> None:
    build(t)
    t.publish("totals", dsn)
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    postgres.refuse(database)
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    assert t.refresh_stream_table("totals").action == "DIFFERENTIAL", "the refresh itself is not touched"
    t.sql("DELETE FROM orders WHERE customer = 'bob'")
    t.refresh_stream_table("totals")
    (row,) = t.list_publications()
    assert row.status == "FAILING"
    assert "SOURCE_UNREACHABLE" in str(row.last_error)
    assert [alert.event for alert in t.alerts()] == ["stale_data"], "told once"
    with pytest.raises(SourceUnreachable):
        t.unpublish("totals")
    postgres.admit(database)
    t.tick()
    with psycopg.connect(dsn) as again:
        assert published(again, "totals") == lake(t, "totals")
    assert [row.status for row in t.list_publications()] == ["CURRENT"]


def test_after_lost_history_or_writes_of_others_it_is_brought_back_in_order(
    t: Trickle, there: Session, dsn: str
) -> None:
    build(t)
    t.publish("amounts", dsn)
    kept = there.execute("SELECT ctid::text FROM amounts WHERE customer = 'bob'").fetchall()
    there.execute("DELETE FROM amounts WHERE customer = 'ada'; INSERT INTO amounts VALUES ('mallory')")
    t.sql("DELETE FROM orders WHERE id = 1")
    t.refresh_stream_table("amounts")
    assert published(there, "amounts") == lake(t, "amounts")
    assert [alert.event for alert in t.alerts()] == ["reinitialize_needed"]
    assert there.execute("SELECT ctid::text FROM amounts WHERE customer = 'bob'").fetchall() == kept
    # As after a vacuum: the files of the changes are gone.
    t.sql("INSERT INTO orders VALUES (10, 'new', 1)")
    there.execute("UPDATE trickle_publish.positions SET version = 0")
    with t.warehouse.catalog.read() as tx:
        location = t.warehouse.location_of(relations.get(tx, table_name("amounts")))
    location.delete("_trickle_changes")
    t.refresh_stream_table("amounts")
    assert published(there, "amounts") == lake(t, "amounts")
    assert [alert.event for alert in t.alerts()] == ["reinitialize_needed", "reinitialize_needed"]


def test_vacuum_keeps_what_a_publication_still_needs(t: Trickle, there: Session, dsn: str, postgres: Postgres) -> None:
    build(t)
    t.sql("SET trickle.vacuum_retention_hours = 0")
    t.publish("totals", dsn)
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    postgres.refuse(database)
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    t.refresh_stream_table("totals")
    t.vacuum("totals")
    postgres.admit(database)
    t.refresh_stream_table("totals")
    with psycopg.connect(dsn) as again:
        assert published(again, "totals") == lake(t, "totals")
    assert [alert.event for alert in t.alerts()] == ["stale_data"], "by changes: nothing had to be loaded anew"


def test_a_full_refresh_is_published_by_its_difference(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.create_stream_table("full", "SELECT customer, amount FROM orders", refresh_mode="FULL")
    t.publish("full", dsn)
    kept = there.execute("SELECT ctid::text FROM \"full\" WHERE customer = 'bob'").fetchall()
    t.sql("DELETE FROM orders WHERE id = 1")
    t.refresh_stream_table("full")
    assert published(there, '"full"') == lake(t, "full")
    assert there.execute("SELECT ctid::text FROM \"full\" WHERE customer = 'bob'").fetchall() == kept


def test_a_partitioned_stream_table(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.create_stream_table("parts", "SELECT customer, amount FROM orders", partition_by=["customer"])
    t.publish("parts", dsn)
    for change in ("INSERT INTO orders VALUES (9, 'cy', 100), (10, NULL, 1)", "DELETE FROM orders WHERE id IN (1, 4)"):
        t.sql(change)
        t.refresh_stream_table("parts")
        assert published(there, "parts") == lake(t, "parts")


def test_nested_values_are_json(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.create_stream_table(
        "nested",
        "SELECT customer, COLLECT_LIST(amount) AS amounts,"
        " NAMED_STRUCT('n', COUNT(*), 'none', CAST(NULL AS STRING)) AS s FROM orders GROUP BY customer",
    )
    t.publish("nested", dsn)
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    t.refresh_stream_table("nested")
    found = there.execute("SELECT amounts, s FROM nested WHERE customer = 'ada'").fetchone()
    assert found == ([5.0, 10.0, 100.0], {"n": 3, "none": None})
    assert published(there, "(SELECT customer FROM nested) x") == {("ada",): 1, ("bob",): 1, (None,): 1}


def test_another_query_gives_the_table_other_columns_or_is_refused_whole(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("totals", dsn)
    there.execute("CREATE INDEX by_total ON totals (total)")
    t.alter_stream_table(
        "totals", query="SELECT customer, SUM(amount) AS total, MAX(id) AS last FROM orders GROUP BY 1"
    )
    assert published(there, "totals") == lake(t, "totals")
    assert there.execute("SELECT count(*) FROM pg_indexes WHERE indexname = 'by_total'").fetchone() == (1,)
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    t.refresh_stream_table("totals")
    assert published(there, "totals") == lake(t, "totals")

    there.execute("CREATE VIEW seen AS SELECT last FROM totals")
    before = published(there, "totals")
    t.alter_stream_table("totals", query="SELECT customer, CAST(SUM(amount) AS STRING) AS total FROM orders GROUP BY 1")
    assert published(there, "totals") == before
    (row,) = t.list_publications()
    assert row.status == "FAILING"
    assert "cannot be brought to the columns" in str(row.last_error)
    there.execute("DROP VIEW seen")
    t.refresh_stream_table("totals")
    assert published(there, "totals") == lake(t, "totals")
    assert [row.status for row in t.list_publications()] == ["CURRENT"]


def test_a_table_that_is_there_must_fit(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    there.execute("CREATE TABLE narrow (customer text, total numeric(12,2))")
    with pytest.raises(InvalidOption, match="other columns") as caught:
        t.publish("totals", dsn, table="narrow")
    assert caught.value.detail == "column 'n' is missing; column 'total' is not numeric(22,2)"
    there.execute("CREATE TABLE wide (customer text, extra int)")
    with pytest.raises(InvalidOption, match="other columns") as caught:
        t.publish("amounts", dsn, table="wide")
    assert caught.value.detail == "column 'extra' is not one of the stream table's"
    there.execute("CREATE TABLE filled AS SELECT 'x' AS customer")
    with pytest.raises(InvalidOption, match="holds rows"):
        t.publish("amounts", dsn, table="filled")
    there.execute("CREATE VIEW shown AS SELECT 'x' AS customer")
    with pytest.raises(InvalidOption, match="is not a table"):
        t.publish("amounts", dsn, table="shown")
    with pytest.raises(InvalidOption, match="no schema 'nowhere'"):
        t.publish("amounts", dsn, table="nowhere.x")
    with pytest.raises(UnknownColumn, match="the key names no column"):
        t.publish("amounts", dsn, key="nobody")
    assert t.list_publications() == []
    t.publish("amounts", dsn, table="filled", replace=True)
    assert published(there, "filled") == lake(t, "amounts")


def test_a_table_of_the_users_with_more_in_it(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    there.execute(
        "CREATE TABLE mine (n bigint, customer varchar(40) DEFAULT 'x', total numeric,"
        " loud text GENERATED ALWAYS AS (upper(customer)) STORED) PARTITION BY LIST (n);"
        "CREATE TABLE ones PARTITION OF mine FOR VALUES IN (1); CREATE TABLE rest PARTITION OF mine DEFAULT"
    )
    t.publish("totals", dsn, table="mine")
    t.sql("INSERT INTO orders VALUES (9, 'bob', 100)")
    t.refresh_stream_table("totals")
    assert published(there, "(SELECT customer, total, n FROM mine) x") == lake(t, "totals")
    assert there.execute("SELECT loud FROM mine WHERE customer = 'bob'").fetchall() == [("BOB",)]
    there.execute("ALTER TABLE mine ADD COLUMN note text")
    t.sql("INSERT INTO orders VALUES (10, 'bob', 100)")
    t.refresh_stream_table("totals")
    assert "has a column that is not the stream table's: 'note'" in str(t.list_publications()[0].last_error)
    there.execute("ALTER TABLE mine DROP COLUMN note")
    t.refresh_stream_table("totals")
    assert published(there, "(SELECT customer, total, n FROM mine) x") == lake(t, "totals")


def test_a_key_is_kept_by_updates_and_must_hold(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.sql("DELETE FROM orders WHERE customer IS NULL")
    t.refresh_stream_table("totals")
    t.publish("totals", dsn, key="customer")
    before = there.execute("SELECT customer, xmin::text FROM totals WHERE customer = 'bob'").fetchall()
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100)")
    t.refresh_stream_table("totals")
    assert published(there, "totals") == lake(t, "totals")
    assert there.execute("SELECT customer, xmin::text FROM totals WHERE customer = 'bob'").fetchall() == before
    t.sql("INSERT INTO orders VALUES (11, NULL, 3)")
    t.refresh_stream_table("totals")
    (row,) = t.list_publications()
    assert "INVALID_DATA" in str(row.last_error)
    assert "null value in column" in str(row.last_error)
    with pytest.raises(InvalidData):
        t.publish("amounts", dsn, key=["customer"])


def test_names_of_any_kind(t: Trickle, there: Session, dsn: str) -> None:
    odd = "We\"ird. na'me; --"
    there.execute('CREATE SCHEMA "Sch.ema"')
    t.sql("CREATE TABLE base (`a\"b` INT, `c'd` INT, `É` INT)")
    t.sql("INSERT INTO base VALUES (1, 2, 3)")
    t.create_stream_table("hostile.`odd ``name`", "SELECT * FROM base")
    quoted = odd.replace('"', '""')
    t.publish("hostile.`odd ``name`", dsn, table=f'"Sch.ema"."{quoted}"')
    t.sql("INSERT INTO base VALUES (1, 2, 3), (NULL, 5, 6)")
    t.refresh_stream_table("hostile.`odd ``name`")
    assert published(there, f'"Sch.ema"."{quoted}"') == {(1, 2, 3): 2, (None, 5, 6): 1}
    with pytest.raises(InvalidName, match="too long"):
        t.publish("hostile.`odd ``name`", dsn, table="é" * 32)
    long = "l" * 63
    t.publish("hostile.`odd ``name`", dsn, table=long)
    assert published(there, long) == {(1, 2, 3): 2, (None, 5, 6): 1}


def test_a_renamed_table_is_followed_and_a_dropped_one_told(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("amounts", dsn)
    there.execute("CREATE SCHEMA moved; ALTER TABLE amounts RENAME TO renamed; ALTER TABLE renamed SET SCHEMA moved")
    t.sql("DELETE FROM orders WHERE id = 1")
    t.refresh_stream_table("amounts")
    assert published(there, "moved.renamed") == lake(t, "amounts")
    assert [row.table for row in t.list_publications()] == ["moved.renamed"]
    there.execute("DROP TABLE moved.renamed")
    t.sql("DELETE FROM orders WHERE id = 2")
    t.refresh_stream_table("amounts")
    assert "was dropped" in str(t.list_publications()[0].last_error)
    assert t.unpublish("amounts") == ["moved.renamed"]
    t.publish("amounts", dsn)
    assert published(there, "amounts") == lake(t, "amounts")


def test_withdrawn_it_stays_as_it_was(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("amounts", dsn)
    with pytest.raises(DependentsExist, match=r"it is published to public\.amounts"):
        t.drop_stream_table("amounts")
    before = published(there, "amounts")
    assert t.unpublish("amounts") == ["public.amounts"]
    t.sql("DELETE FROM orders WHERE id = 1")
    t.refresh_stream_table("amounts")
    assert published(there, "amounts") == before
    assert position(there) == [], "nothing of it is remembered"
    assert there.execute("SELECT count(*) FROM pg_indexes WHERE tablename = 'amounts'").fetchone() == (0,)
    with pytest.raises(InvalidOption, match="is not published"):
        t.unpublish("amounts")
    t.publish("amounts", dsn, replace=True)
    assert t.unpublish("amounts", drop=True) == ["public.amounts"]
    assert there.execute("SELECT to_regclass('public.amounts')").fetchone() == (None,)


def test_one_table_belongs_to_one_stream_table(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.publish("amounts", dsn, table="shared")
    t.create_stream_table("others", "SELECT customer FROM orders WHERE id > 2")
    with pytest.raises(DuplicateName, match="another stream table is published to"):
        t.publish("others", dsn, table="shared", replace=True)
    assert t.publish("amounts", dsn, table="shared", replace=True).status == "CURRENT", "again: all rows are compared"
    assert published(there, "shared") == lake(t, "amounts")
    t.drop_stream_table("amounts", cascade=True)
    t.publish("others", dsn, table="shared")
    assert published(there, "shared") == lake(t, "others")


def test_what_cannot_be_published_is_said(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    with pytest.raises(UnknownTable):
        t.publish("nothing", dsn)
    t.create_stream_table("empty", "SELECT * FROM orders", initialize=False)
    with pytest.raises(UserError, match="has not been filled yet"):
        t.publish("empty", dsn)
    t.create_stream_table("nul", "SELECT customer || '\\u0000' AS c FROM orders")
    with pytest.raises(InvalidData, match="column 'c' of"):
        t.publish("nul", dsn)
    there.execute("DROP ROLE IF EXISTS guest")
    there.execute("CREATE ROLE guest LOGIN")
    guest = dsn.replace("postgres@", "guest@", 1)
    with pytest.raises(SourceRefused):
        t.publish("totals", guest)
    there.execute(
        "GRANT CREATE ON SCHEMA public TO guest; CREATE SCHEMA trickle_publish AUTHORIZATION guest;"
        "CREATE TABLE forced (customer text); ALTER TABLE forced OWNER TO guest;"
        "ALTER TABLE forced ENABLE ROW LEVEL SECURITY; ALTER TABLE forced FORCE ROW LEVEL SECURITY"
    )
    with pytest.raises(SourceRefused, match=r"policies of public\.forced apply"):
        t.publish("amounts", guest, table="forced")
    there.execute("ALTER TABLE forced NO FORCE ROW LEVEL SECURITY")
    t.publish("amounts", guest, table="forced")
    assert published(there, "forced") == lake(t, "amounts")
    there.execute("DROP OWNED BY guest; DROP ROLE guest")


def test_by_sql(t: Trickle, there: Session, dsn: str) -> None:
    build(t)
    t.sql(f"CALL trickle.publish('totals', '{dsn}', table => 'public.t2')")
    t.sql("INSERT INTO orders VALUES (9, 'ada', 100); REFRESH STREAM TABLE totals")
    assert published(there, "t2") == lake(t, "totals")
    rows = t.sql("SELECT name, `table`, status FROM trickle.list_publications").collect()  # type: ignore[union-attr]
    assert [tuple(row) for row in rows] == [("totals", "public.t2", "CURRENT")]
    t.sql("CALL trickle.unpublish('totals', drop => true)")
    assert t.list_publications() == []


def test_an_address_that_does_not_work_leaves_the_one_that_does(t: Trickle, there: Session, dsn: str) -> None:
    """Addresses that differ in what people are not shown are one place: a password, or an option as here."""
    build(t)
    t.publish("totals", dsn)
    with pytest.raises(TrickleError):
        t.publish("totals", f"{dsn}&options=-c%20no_such_setting%3D1")
    t.sql("INSERT INTO orders VALUES (9, 'eve', 1)")
    t.refresh_stream_table("totals")
    assert [row.status for row in t.list_publications()] == ["CURRENT"]
    assert published(there, "totals") == lake(t, "totals")
    t.publish("totals", f"{dsn}&application_name=again")
    with t.warehouse.catalog.read() as tx:
        assert [one.dsn for one in publications.listing(tx)] == [f"{dsn}&application_name=again"]
