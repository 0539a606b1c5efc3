"""Texts of several statements, SET, and CALL of every procedure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from tests.postgres import Postgres
from tests.scenarios.story import ask, contents, inventory, listed, refused, state
from trickle.api import PROCEDURES, Trickle
from trickle.errors import (
    DependentsExist,
    Gated,
    InvalidName,
    InvalidOption,
    ParseError,
    UnknownFunction,
    UnknownTable,
    UnsupportedStatement,
)
from trickle.refresh.outcome import RefreshResult
from trickle.tables.results import Done
from trickle.testing import check


def test_the_last_statement_gives_the_result(t: Trickle) -> None:
    text = """
        -- a comment; with a semicolon
        CREATE TABLE a (x STRING);
        INSERT INTO a VALUES ('one; two'), ("three /* four");
        /* SELECT 1; */
        SELECT count(*) FROM a;
    """
    assert ask(t, text) == [(2,)]
    assert t.sql("  ;; -- nothing\n") is None
    assert t.sql("") is None


def test_all_statements_are_parsed_before_the_first_runs(t: Trickle) -> None:
    before = inventory(t)
    refused(t, "CREATE TABLE a (x INT); INSERT INTO a VALUES (1); SELEC * FROM a", UnsupportedStatement, "SELEC")
    refused(t, "CREATE TABLE a (x INT); CREATE TABLE b (", ParseError, "expected")
    assert inventory(t) == before


def test_what_ran_before_a_failing_statement_stays(t: Trickle) -> None:
    refused(t, "CREATE TABLE a (x INT); INSERT INTO a VALUES (1); INSERT INTO b VALUES (2)", UnknownTable, "b")
    assert contents(t, "a") == [(1,)]


def test_errors_tell_the_place_in_the_text(t: Trickle) -> None:
    with pytest.raises(ParseError) as caught:
        t.sql("SELECT 1;\nCREATE TABLE a (x INT,,)")
    assert (caught.value.line, caught.value.column) == (2, 23)


def test_settings_are_set_reset_and_checked(t: Trickle) -> None:
    def value() -> object:
        return next(row.value for row in t.settings() if row.name == "max_consecutive_errors")

    t.sql("SET trickle.max_consecutive_errors = 7")
    assert value() == "7"
    assert ask(t, "SELECT value, default FROM trickle.settings WHERE name = 'max_consecutive_errors'") == [("7", "3")]
    refused(t, "SET trickle.max_consecutive_errors = 0", InvalidOption, "out of range")
    refused(t, "SET trickle.max_consecutive_errors = 'many'", InvalidOption, "whole number")
    refused(t, "SET trickle.max_consecutive_error = 1", InvalidOption, "unknown setting", hint="max_consecutive_errors")
    refused(t, "RESET trickle.max_errors", InvalidOption, "unknown setting")
    refused(t, "SET spark.sql.ansi.enabled = false", UnsupportedStatement, "spark.sql.ansi.enabled")
    assert value() == "7"
    t.sql("RESET trickle.max_consecutive_errors")
    assert value() == "3"


def two_rows(spark: SparkSession) -> DataFrame:
    """A function that is polled."""
    return spark.range(2)


def test_every_procedure_is_called_by_sql(t: Trickle, tmp_path: Path, postgres: Postgres) -> None:
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"x": [1, 2]}))
    csv = tmp_path / "prices.csv"
    csv.write_text("id;price\n1;2\n")
    with postgres.database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE goods (id int PRIMARY KEY)")
        _call_every_procedure(t, place, csv, dsn)


def _call_every_procedure(t: Trickle, place: Path, csv: Path, dsn: str) -> None:
    calls = {
        "attach_table": f"'events', '{place}'",
        "create_stream_table": "'s', 'SELECT x FROM events', schedule => '5s', tier => 'hot'",
        "create_stream_table_if_not_exists": "'s', 'SELECT 1 AS y'",
        "create_or_replace_stream_table": "name => 's', query => 'SELECT x FROM events WHERE x > 1'",
        "alter_stream_table": "'s', tier => 'cold', description => NULL",
        "suspend_stream_table": "'s'",
        "resume_stream_table": "'s'",
        "refresh_stream_table": "'s', force => true",
        "changes": "'s', 0",
        "compact": "'s'",
        "describe": "'s'",
        "explain_delta": "'s', format => 'sql'",
        "explain_query_rewrite": "'SELECT count(*) AS n FROM events'",
        "explain_refresh_mode": "'s'",
        "explain_st": "'s'",
        "list_auxiliary_columns": "'s'",
        "validate_query": "'SELECT count(*) AS n FROM events'",
        "status": "",
        "tables": "",
        "dependencies": "",
        "settings": "",
        "alerts": "limit => 5",
        "refresh_history": "'s', limit => 1",
        "vacuum": "dry_run => true",
        "gate_source": "'events', by => 'me', reason => 'a load'",
        "bootstrap_gate_status": "",
        "why_not_refreshed": "'s'",
        "ungate_source": "'events'",
        "source_gates": "",
        "advance_watermark": "'events', '2026-01-31T00:00:00+00:00'",
        "create_watermark_group": "'g', 'events, more', tolerance => 30",
        "watermarks": "",
        "watermark_groups": "",
        "watermark_status": "",
        "drop_watermark_group": "'g'",
        "set_source_fuse": "'events', 'fixed', fuse_ceiling => 1",
        "fuse_status": "",
        "inspect_fuse": "'events'",
        "reset_fuse": "'events', action => 'apply'",
        "register_gate": "'any', 'SELECT true', tables => 's'",
        "gates": "",
        "drop_gate": "'any'",
        "create_refresh_group": "'together', 's, other'",
        "refresh_groups": "",
        "drop_refresh_group": "'together'",
        "diamond_groups": "",
        "scc_status": "",
        "dependency_tree": "'s'",
        "explain_dag": "format => 'dot'",
        "pause_all": "reason => 'a holiday'",
        "drain": "timeout => 1",
        "resume_all": "",
        "tick": "",
        "scheduler_status": "",
        "worker_pool_status": "",
        "parallel_job_status": "limit => 5",
        "attach_postgres": f"'shop', '{dsn}', tables => 'goods', cdc_mode => 'trigger'",
        "attach_files": f"'prices', '{csv}', format => 'csv', options => 'sep=;', schedule => '5m'",
        "attach_function": "'numbers', 'tests.scenarios.test_statements:two_rows'",
        "ingest": "'shop'",
        "list_sources": "",
        "cdc_status": "",
        "check_cdc_health": "",
        "slot_health": "",
        "change_buffer_sizes": "",
        "rebuild_cdc_triggers": "'shop'",
        "detach": "'shop', tables => 'goods', cascade => true",
        "publish": f"'s', '{dsn}', table => 'public.s_there', key => 'x'",
        "list_publications": "",
        "unpublish": "'s', drop => true",
        "drop_stream_table": "'s', cascade => false",
    }
    assert sorted(calls) == sorted(PROCEDURES)
    t.sql("CREATE TABLE more (x INT)")
    t.create_stream_table("other", "SELECT x FROM more")
    results = {}
    for name, arguments in calls.items():
        if name == "inspect_fuse":
            write_deltalake(place, pa.table({"x": [5, 6, 7]}), mode="append")
            with pytest.raises(Gated):
                t.refresh_stream_table("s")
        results[name] = t.sql(f"CALL trickle.{name}({arguments})")
    kinds = {name: type(result).__name__ for name, result in results.items()}
    silent = ["attach_table", "drop_gate", "drop_refresh_group", "drop_watermark_group", "register_gate"]
    assert sorted(name for name, kind in kinds.items() if kind == "NoneType") == silent
    assert isinstance(results["refresh_stream_table"], RefreshResult)
    assert isinstance(results["changes"], DataFrame)
    del kinds["refresh_stream_table"], kinds["changes"]
    assert set(kinds.values()) == {"Listing", "NoneType"}
    assert [row.name for row in t.status()] == ["other"]


def test_a_call_lists_what_the_python_function_returns(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE STREAM TABLE s AS SELECT x FROM a")
    check(t)
    assert listed(t, "CALL trickle.status()") == [asdict(state(t, "s"))]
    assert listed(t, "CALL trickle.tables()") == [asdict(row) for row in t.tables()]
    assert listed(t, "CALL trickle.refresh_history('s')") == [asdict(row) for row in t.refresh_history("s")]
    assert listed(t, "CALL trickle.describe('a')") == [asdict(row) for row in t.describe("a")]
    assert listed(t, "CALL trickle.drop_stream_table('s')") == [{"value": "s"}]
    assert listed(t, "CALL trickle.status()") == []


def test_calls_that_cannot_be_are_refused(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE STREAM TABLE s AS SELECT x FROM a")
    before = inventory(t)
    refused(t, "CALL trickle.refresh_stream_tabel('s')", UnknownFunction, "no procedure", hint="refresh_stream_table")
    refused(t, "CALL trickle.close()", UnknownFunction, "no procedure trickle.close")
    refused(t, "CALL trickle.sql('DROP TABLE a CASCADE')", UnknownFunction, "no procedure trickle.sql")
    refused(t, "CALL system.status()", UnknownFunction, "no procedure system.status")
    refused(t, "CALL trickle.refresh_stream_table()", InvalidOption, "wrong arguments")
    refused(t, "CALL trickle.status(1)", InvalidOption, "wrong arguments")
    refused(t, "CALL trickle.refresh_stream_table('s', forced => true)", InvalidOption, "forced")
    refused(t, "CALL trickle.drop_stream_table('a.b.c')", InvalidName, "one or two parts")
    refused(t, "CALL trickle.changes('s', -1)", InvalidOption, "no changes from version -1")
    assert inventory(t) == before


def test_arguments_of_the_wrong_type_are_refused(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE STREAM TABLE s AS SELECT x FROM a")
    before = inventory(t)
    for call in (
        "compact(5)",
        "vacuum(1)",
        "refresh_stream_table(NULL)",
        "refresh_stream_table('s', force => 'yes')",
        "changes('s', 'x')",
        "refresh_history(limit => 'all')",
        "alerts(limit => NULL)",
        "create_stream_table('n', 5)",
        "create_stream_table('n', 'SELECT 1 AS x', initialize => 'perhaps')",
        "create_stream_table('n', 'SELECT 1 AS x', schedule => 5)",
        "attach_table('e', 5)",
    ):
        with pytest.raises(InvalidOption):
            t.sql(f"CALL trickle.{call}")
    assert inventory(t) == before


def test_ddl_says_what_it_did(t: Trickle) -> None:
    def done(text: str) -> str:
        result = t.sql(text)
        assert isinstance(result, Done)
        return result.message

    assert done("CREATE TABLE a (x INT)") == "table a created"
    assert done("CREATE OR REPLACE TABLE a (x INT, y INT)") == "table a replaced"
    assert done("CREATE TABLE IF NOT EXISTS a (x INT)") == "table a exists already"
    assert done("CREATE VIEW v AS SELECT x FROM a") == "view v created"
    assert done("CREATE STREAM TABLE s AS SELECT x FROM v") == "stream table s created"
    assert done("ALTER TABLE a ADD COLUMN z INT") == "added to a: z"
    assert done("DROP STREAM TABLE s") == "dropped s"
    assert done("DROP TABLE IF EXISTS s") == "table s does not exist"
    refused(t, "DROP TABLE a", DependentsExist, "view v depends on it")
