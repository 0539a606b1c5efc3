"""Input that nobody should send: it works, or it ends in one clear error, and nothing is half done."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import trickle
from tests.scenarios.story import ask, changed, contents, folder, inventory, refreshed
from trickle.algebra.names import quote
from trickle.api import Trickle
from trickle.errors import InvalidOption, ParseError, TrickleError, UnsupportedQuery, UserError
from trickle.sql import parse
from trickle.testing import check

STRANGE = (
    "a b",
    "a`b",
    'a"b',
    "it's",
    "a;DROP TABLE victim",
    "a.b.c",
    "naïve",
    "表",
    "🙂",
    "../../x",
    "..",
    "/etc/passwd",
    "a\\b",
    "%2e%2e",
    "{t0}",
    "$1",
    "--",
    "/*",
    "select",
    "NULL",
    "0",
    "con",
    "A" * 128,
    "ﬀ",
    "İ",
)

FORBIDDEN = ("", " ", "a\0b", "a\nb", "\ud800", "__trickle_x", "A" * 129, "\x1b[31m")


def test_strange_names_of_tables_work_and_stay_in_the_warehouse(t: Trickle) -> None:
    t.sql("CREATE TABLE victim (x INT)")
    root = Path(t.warehouse.root.uri)
    for number, name in enumerate(STRANGE):
        t.sql(f"CREATE TABLE {quote(name)} (x INT); INSERT INTO {quote(name)} VALUES ({number})")
        place = folder(t, t.tables()[0].name if len(t.tables()) == 1 else _shown(t, name))
        assert place.resolve().is_relative_to(root.resolve() / "default"), name
        assert place.parent == root / "default", name
    for number, name in enumerate(STRANGE):
        assert contents(t, quote(name)) == [(number,)], name
    assert len(t.tables()) == len(STRANGE) + 1
    assert sorted(p.name for p in root.parent.iterdir()) == [root.name]


def _shown(t: Trickle, name: str) -> str:
    return next(row.name for row in t.tables() if row.name.strip("`").replace("``", "`").lower() == name.lower())


@pytest.mark.parametrize("name", ["a`b'; --.{t0}", '../../🙂 %20"'])
def test_a_strange_name_goes_through_a_whole_life(t: Trickle, name: str) -> None:
    table, view, stream = (f"{quote(name)}.{quote(kind + name)}" for kind in ("t", "v", "s"))
    t.sql(f"CREATE TABLE {table} (x INT); INSERT INTO {table} VALUES (1), (2)")
    t.sql(f"CREATE VIEW {view} AS SELECT x FROM {table}")
    t.sql(f"CREATE STREAM TABLE {stream} AS SELECT x FROM {view}")
    t.sql(f"UPDATE {table} SET x = 5 WHERE x = 1; DELETE FROM {table} AS {quote(name)} WHERE {quote(name)}.x = 2")
    t.sql(f"MERGE INTO {table} USING {view} ON false WHEN NOT MATCHED THEN INSERT (x) VALUES (9)")
    t.write(table, pa.table({"x": pa.array([7], pa.int32())}))
    t.refresh_stream_table(stream)
    check(t)
    assert contents(t, stream) == [(5,), (7,), (9,)]
    assert ask(t, "SELECT count(*) FROM trickle.tables") == [(3,)]
    t.compact(stream)
    t.vacuum(stream)
    t.sql(f"ALTER TABLE {table} ADD COLUMN y INT; DROP TABLE {table} CASCADE")
    assert t.tables() == []


def test_names_that_cannot_be_stored_are_refused(t: Trickle) -> None:
    before = inventory(t)
    for name in FORBIDDEN:
        for text in ("CREATE TABLE {} (x INT)", "CREATE TABLE a ({} INT)", "CREATE VIEW {} AS SELECT 1 AS x",
                     "CREATE STREAM TABLE {} AS SELECT 1 AS x", "CREATE TABLE {}.a (x INT)"):  # fmt: skip
            with pytest.raises(UserError):
                t.sql(text.format(quote(name)))
        with pytest.raises(UserError):
            t.create_stream_table(quote(name), "SELECT 1 AS x")
        with pytest.raises(UserError):
            t.table(name)
    assert inventory(t) == before


COLUMNS = ("a`b", "it's", "naïve", "🙂", "a.b", "select", "a/b", "a%20b", "_metadata", "İ", "$1", "--", "row", "o")


def test_strange_names_of_columns_work(t: Trickle) -> None:
    columns = [quote(name) for name in COLUMNS]
    t.sql(f"CREATE TABLE a (k INT, {', '.join(f'{column} STRING' for column in columns)})")
    values = ", ".join(f"'{number}'" for number in range(len(columns)))
    assert changed(t, f"INSERT INTO a VALUES (1, {values}); INSERT INTO a (k) VALUES (2)") == (1, 0)
    t.sql(f"CREATE STREAM TABLE s AS SELECT {', '.join(columns)}, count(*) AS n FROM a GROUP BY ALL")
    t.sql(f"CREATE STREAM TABLE parts WITH (partition_by = 'a`b') AS SELECT k, {columns[0]} FROM a")
    check(t)
    sets = ", ".join(f"{column} = concat({column}, 'y')" for column in columns)
    assert changed(t, f"UPDATE a SET {sets} WHERE a.{columns[0]} = '0'") == (1, 1)
    source = ", ".join(f"'z' AS {column}" for column in columns)
    merge = f"MERGE INTO a USING (SELECT 2 AS k, {source}) AS s ON a.k = s.k WHEN MATCHED THEN UPDATE SET *"
    assert changed(t, merge) == (1, 1)
    refreshed(t, "s", "parts")
    assert contents(t, "a") == [(1, *(f"{n}y" for n in range(len(columns)))), (2, *(["z"] * len(columns)))]


VALUES = ("'; DROP TABLE a; --", "a\\", "{t0}", "\u2028", "🙂", "`", "\t\n", "%s", "NULL", "")


def test_strange_values_survive(t: Trickle) -> None:
    t.sql("CREATE TABLE a (n INT, x STRING)")
    literals = ["'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" for value in VALUES]
    rows = ", ".join(f"({number}, {literal})" for number, literal in enumerate(literals))
    assert changed(t, f"INSERT INTO a VALUES {rows}") == (len(VALUES), 0)
    assert contents(t, "a") == list(enumerate(VALUES))
    t.write("a", pa.table({"x": list(VALUES)}))
    assert changed(t, f"DELETE FROM a WHERE x IN ({', '.join(literals)})") == (0, 2 * len(VALUES))


def test_empty_and_broken_texts(t: Trickle) -> None:
    before = inventory(t)
    for text in ("", " ", ";", "\n--x", "/* */"):
        assert t.sql(text) is None
        with pytest.raises(ParseError):
            t.create_stream_table("s", text)
    for text in (
        "'",
        "`",
        '"',
        "/*",
        "(",
        ")",
        "SELECT",
        "SELECT (",
        "\0",
        "SELECT 1 \0",
        "🙂",
        "\\",
        "SELECT '\ud800'",
        "CREATE",
        "CREATE TABLE",
        "DROP",
        "INSERT INTO",
        "MERGE",
        "CALL",
        "CALL trickle.",
        "SET",
        "SELECT 1; (",
    ):
        with pytest.raises(TrickleError) as caught:
            t.sql(text)
        assert caught.value.exit_code == 2, text
        assert len(str(caught.value)) < 2000, text
    assert inventory(t) == before


def test_a_megabyte_of_query(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x STRING)")
    long = "x" * 1_000_000
    assert changed(t, f"INSERT INTO a VALUES ('{long}')") == (1, 0)
    assert ask(t, f"SELECT length(x), x = '{long}' FROM a -- {long}") == [(1_000_000, True)]
    t.sql(f"CREATE STREAM TABLE s AS SELECT length(x) AS n FROM a WHERE x <> '{long}!'")
    check(t)
    assert contents(t, "s") == [(1_000_000,)]
    with pytest.raises(TrickleError) as caught:
        t.sql("SELECT " + "nope + " * 20_000 + "1")
    assert len(str(caught.value)) < 2000


def test_ten_thousand_columns(t: Trickle) -> None:
    columns = [f"{number} AS c{number}" for number in range(10_000)]
    assert ask(t, f"SELECT {', '.join(columns)}") == [tuple(range(10_000))]
    t.sql(f"CREATE STREAM TABLE s AS SELECT {', '.join(columns[:300])}")
    check(t)
    assert len(t.describe("s")) == 300


def test_deep_nesting_is_refused_before_anything_recurses(t: Trickle) -> None:
    before = inventory(t)
    for text in (
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT * FROM " + "(SELECT * FROM " * 500 + "range(1)" + ")" * 500,
        "SELECT " + "NOT " * 5000 + "true",
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + "CASE WHEN true THEN " * 2000 + "1" + " END" * 2000,
        "SELECT " + "array(" * 3000 + ")" * 3000,
        " UNION ALL ".join(["SELECT 1 AS x"] * 3000),
        "SELECT " + " + ".join(["1"] * 20_000),
    ):
        with pytest.raises(TrickleError) as caught:
            t.sql(text)
        assert len(str(caught.value)) < 2000, text[:40]
    assert inventory(t) == before


@pytest.mark.parametrize(
    "text",
    ["CREATE TABLE a (x {})", "ALTER TABLE a ADD COLUMN x {}", "SELECT CAST(NULL AS {})"],
    ids=lambda text: text[:6],
)
@pytest.mark.parametrize("kind", ["ARRAY<", "STRUCT<a: ", "MAP<INT, "], ids=["array", "struct", "map"])
def test_deeply_nested_types_are_refused_too(text: str, kind: str) -> None:
    """Spark's parser would take hours over them."""
    with pytest.raises(UnsupportedQuery, match="nested too deeply"):
        parse(text.format(kind * 150 + "INT" + ">" * 150))


def test_views_on_views_on_views(t: Trickle) -> None:
    t.sql("CREATE TABLE v0 (x INT); INSERT INTO v0 VALUES (1)")
    for number in range(1, 13):
        t.sql(f"CREATE VIEW v{number} AS SELECT x + 1 AS x FROM v{number - 1}")
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM v12")
    check(t)
    assert contents(t, "s") == [(13,)]


def test_a_warehouse_with_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption):
        trickle.connect(tmp_path / "a\0b")


def test_a_warehouse_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TrickleError):
        trickle.connect(tmp_path / "file")
    with pytest.raises(TrickleError):
        trickle.connect(tmp_path / "file" / "below")
    with pytest.raises(TrickleError):
        trickle.connect(tmp_path / "nothing", create=False)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
