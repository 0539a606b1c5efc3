from __future__ import annotations

import psycopg
import pytest

from tests.postgres import Postgres
from trickle.errors import InvalidOption, SourceRefused, SourceUnreachable
from trickle.postgres.connect import check_dsn, check_version, check_writable, connected, shown


def test_texts_do_not_depend_on_the_defaults_of_the_database(postgres: Postgres, dsn: str) -> None:
    database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    for setting in (
        "timezone = 'Asia/Tokyo'",
        "datestyle = 'German, DMY'",
        "intervalstyle = 'sql_standard'",
        "bytea_output = 'escape'",
    ):
        postgres.execute(f"ALTER DATABASE {database} SET {setting}")
    with connected(dsn) as connection:
        found = connection.execute(
            "SELECT '2024-01-02 03:04+00'::timestamptz::text, '1 day'::interval::text, '\\x00'::bytea::text"
        ).fetchone()
    assert found == ("2024-01-02 03:04:00+00", "P1D", "\\x00")


def test_who_waited_sees_what_was_written_meanwhile_whatever_the_role_has_as_its_default(
    postgres: Postgres, dsn: str
) -> None:
    database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    postgres.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'repeatable read'")
    with connected(dsn) as connection, connection.transaction():
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


@pytest.mark.parametrize(
    "dsn, text",
    [
        ("postgresql://ada:s3cret@db:5433/shop", "postgresql://ada:***@db:5433/shop"),
        ("host=db user=ada password=s3cret dbname=shop", "postgresql://ada:***@db/shop"),
        ("postgresql://ada@db/shop?password=s3cret&sslmode=require", "postgresql://ada:***@db/shop"),
        ("postgresql:///shop", "postgresql:///shop"),
    ],
)
def test_addresses_are_shown_without_their_password(dsn: str, text: str) -> None:
    assert shown(dsn) == text


def test_an_address_that_nobody_can_read_is_not_repeated() -> None:
    with pytest.raises(InvalidOption) as caught:
        shown("postgresql://ada:s3cret@db:port?=/")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ada:se/s3cret@db/x",
        "postgresql://ada:1/s3cret@db/x",
        "postgresql://ada:p@s3cret@db/x",
        "postgres://ada:p@s3/s3cret@db/x",
        "postgresql://ada:s3cret?sslmode=a@db/x",
        "postgresql://ada:12?sslmode=s3cret@db/x",
        "host=db port=s3cret",
    ],
)
def test_a_password_that_would_be_taken_for_a_host_is_not_repeated(dsn: str) -> None:
    for reads in (check_dsn, shown):
        with pytest.raises(InvalidOption, match="in two ways") as caught:
            reads(dsn)
        assert "s3cret" not in str(caught.value)
        assert "%40" in str(caught.value.hint)


@pytest.mark.parametrize(
    "dsn, text",
    [
        ("postgresql://ada:se%2Fcr%40t@db/x", "postgresql://ada:***@db/x"),
        ("postgresql://ada:#s3cret@db/x", "postgresql://ada:***@db/x"),
        ("postgresql://ada@db:1,other:2/x", "postgresql://ada@db,other:1,2/x"),
        ("postgresql://ada:s3cret@[::1]:5432/x?user=ada@corp", "postgresql://ada@corp:***@::1:5432/x"),
        ("host=db dbname=a@b", "postgresql://db/a@b"),
    ],
)
def test_addresses_that_can_be_read_in_one_way(dsn: str, text: str) -> None:
    assert shown(check_dsn(dsn)) == text


def test_no_such_server() -> None:
    with (
        pytest.raises(SourceUnreachable, match="no connection"),
        connected("postgresql://ada:s3cret@/x?host=/nowhere"),
    ):
        pass


def test_no_such_database(postgres: Postgres) -> None:
    with pytest.raises(SourceUnreachable, match="no connection") as caught, connected(postgres.url("nowhere")):
        pass
    assert '"nowhere" does not exist' in str(caught.value.detail)


def test_a_missing_right_is_a_refusal(postgres: Postgres, dsn: str) -> None:
    with connected(dsn) as connection:
        connection.execute("CREATE TABLE public.t (a int); DROP ROLE IF EXISTS nobody_here; CREATE ROLE nobody_here")
        connection.execute("SET ROLE nobody_here")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM public.t")
    with pytest.raises(SourceRefused, match="does not allow this"), connected(dsn) as connection:
        connection.execute("SET ROLE nobody_here")
        connection.execute("SELECT * FROM public.t")
    postgres.execute("DROP ROLE nobody_here")


def test_rows_that_a_policy_would_hide_are_an_error(postgres: Postgres, dsn: str) -> None:
    with connected(dsn) as connection:
        connection.execute("CREATE TABLE public.t (a int); ALTER TABLE public.t ENABLE ROW LEVEL SECURITY")
        connection.execute("DROP ROLE IF EXISTS thin; CREATE ROLE thin; GRANT SELECT ON public.t TO thin")
    with pytest.raises(SourceRefused), connected(dsn) as connection:
        connection.execute("SET ROLE thin")
        connection.execute("SELECT * FROM public.t")
    with connected(dsn) as connection:
        connection.execute("DROP OWNED BY thin; DROP ROLE thin")


def test_old_servers_are_refused() -> None:
    check_version(140_000, "here")
    with pytest.raises(SourceRefused, match="too old") as caught:
        check_version(130_014, "here")
    assert "13.14" in str(caught.value.detail)


def test_a_primary_is_writable(dsn: str) -> None:
    with connected(dsn) as connection:
        check_writable(connection, "here")
