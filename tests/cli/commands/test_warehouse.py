from __future__ import annotations

import tomllib

from tests.cli.runner import Cli
from trickle.cli.commands.warehouse import settings_template
from trickle.settings import Settings, combine, from_toml


def test_init_makes_a_warehouse_and_says_what_comes_next(bare: Cli) -> None:
    made = bare("init")
    assert made.code == 0
    assert f"made a warehouse at {bare.warehouse}" in made.out
    assert made.out.splitlines()[-1].startswith(f'next: trickle -w {bare.warehouse} sql "CREATE TABLE')
    assert bare("status").code == 0


def test_init_leaves_what_is_there_as_it_is(cli: Cli) -> None:
    settings = cli.warehouse / "trickle.toml"
    settings.write_text("[trickle]\nmax_consecutive_errors = 7\n")
    again = cli.document("init")
    assert again == {"warehouse": str(cli.warehouse), "created": False, "settings": str(settings)}
    assert settings.read_text() == "[trickle]\nmax_consecutive_errors = 7\n"
    values = {row["name"]: row["value"] for row in cli.document("settings")}
    assert values["max_consecutive_errors"] == "7"


def test_init_takes_the_place_as_an_argument(bare: Cli) -> None:
    other = bare.warehouse.parent / "other"
    assert bare.document("init", str(other))["warehouse"] == str(other)
    assert (other / "trickle.db").exists()
    assert not bare.warehouse.exists()


def test_init_where_a_file_is_in_the_way_is_refused(bare: Cli) -> None:
    bare.warehouse.write_text("")
    ran = bare("init")
    assert ran.code == 2
    assert "error: no warehouse can be made at" in ran.err


def test_the_settings_file_changes_nothing_until_it_is_edited() -> None:
    template = settings_template()
    assert from_toml(template) == {}
    edited = "\n".join(line.removeprefix("# ") if " = " in line else line for line in template.splitlines())
    assert combine(Settings(), tomllib.loads(edited)["trickle"]) == Settings()


def test_every_other_command_wants_a_warehouse(bare: Cli) -> None:
    for line in (["status"], ["sql", "SELECT 1"], ["refresh", "--all"], ["table", "x"], ["vacuum"]):
        ran = bare(*line)
        assert ran.code == 5, line
        assert ran.err.splitlines() == [
            f"error: there is no warehouse at {bare.warehouse} [WAREHOUSE_MISSING]",
            f"hint: trickle init {bare.warehouse}",
        ]
    assert not bare.warehouse.exists()


def test_version_needs_no_warehouse(bare: Cli) -> None:
    assert bare.document("version")["trickle"] in bare("version").out


def test_vacuum_of_an_empty_warehouse_removes_nothing(cli: Cli) -> None:
    assert cli("vacuum").out == "nothing to remove\n"
    assert cli.document("vacuum", "--dry-run") == []


def test_small_files_are_written_together(shop: Cli) -> None:
    shop("sql", "INSERT INTO orders VALUES (4, 'eve', 2); INSERT INTO orders VALUES (5, 'eve', 2)")
    done = shop.document("compact", "orders")
    assert done["files_after"] < done["files_before"]
