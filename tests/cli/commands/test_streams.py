from __future__ import annotations

from pathlib import Path

from tests.cli.runner import Cli

QUERY = "SELECT COUNT(*) AS n FROM orders"


def test_a_stream_table_is_made_and_filled(shop: Cli, tmp_path: Path) -> None:
    assert shop("create", "many", QUERY, "--schedule", "30s").out == (
        "stream table many created: ACTIVE, schedule 30s, mode AUTO\n"
    )
    assert shop.document("table", "many") == [{"n": 3}]
    file = tmp_path / "q.sql"
    file.write_text(QUERY)
    made = shop.document("create", "again", "-f", str(file), "-o", "tier=cold", "-o", "fuse_ceiling=10")
    assert (made["status"], made["options"]) == ("ACTIVE", '{"fuse_ceiling": 10, "tier": "cold"}')


def test_a_stream_table_may_stay_empty_at_first(shop: Cli) -> None:
    made = shop.document("create", "many", QUERY, "--no-initialize")
    assert (made["status"], made["populated"]) == ("INITIALIZING", False)


def test_a_name_that_is_taken(shop: Cli) -> None:
    taken = shop("create", "grand", QUERY)
    assert taken.code == 2
    assert "[DUPLICATE_NAME]" in taken.err
    kept = shop("create", "grand", QUERY, "--if-not-exists")
    assert kept.out.startswith("stream table grand exists already")
    assert shop.document("describe", "grand")[0]["name"] == "total"
    replaced = shop("create", "grand", QUERY, "--or-replace")
    assert replaced.out.startswith("stream table grand replaced"), replaced.err
    assert shop.document("table", "grand") == [{"n": 3}]


def test_a_stream_table_is_altered_suspended_and_resumed(shop: Cli) -> None:
    assert shop.document("alter", "grand", "--schedule", "1h", "-o", "tier=warm")["schedule"] == "1h"
    assert shop.document("alter", "grand", "-o", "tier=")["options"] == "{}"
    assert shop("suspend", "grand").out.startswith("stream table grand suspended: SUSPENDED")
    refused = shop("refresh", "grand", "--json")
    assert refused.code == 3
    assert refused.error["code"] == "SUSPENDED"
    assert shop("resume", "grand").out.startswith("stream table grand resumed: ACTIVE")
    assert shop("refresh", "grand").code == 0


def test_what_makes_no_sense_is_refused_before_spark(cli: Cli) -> None:
    for line, told in (
        (["create", "x"], "the query of x is missing"),
        (["create", "x", QUERY, "--or-replace", "--if-not-exists"], "contradict each other"),
        (["create", "x", QUERY, "-o", "tierr=hot"], "did you mean 'tier'?"),
        (["create", "x", QUERY, "--schedule", "soon"], "not a schedule: 'soon'"),
        (["alter", "x"], "nothing to change"),
        (["suspend", "x"], "no stream table is called x"),
    ):
        ran = cli(*line)
        assert ran.code == 2, line
        assert told in ran.err
