from __future__ import annotations

import re
import signal
import subprocess
import threading

from tests.cli.runner import COMMAND, PATIENCE, Cli


def test_a_tick_refreshes_what_is_due_in_order(shop: Cli) -> None:
    shop("alter", "per_customer", "--schedule", "1s")
    shop("sql", "INSERT INTO orders VALUES (4, 'ada', 2.5)")
    _wait_until_due()
    done = shop.document("tick")
    assert [(row["name"], row["action"]) for row in done] == [("per_customer", "FULL"), ("grand", "FULL")]
    assert shop.document("table", "grand") == [{"total": "19.00"}]
    assert [(row["members"], row["status"]) for row in shop.document("jobs")] == [
        ("grand", "SUCCEEDED"),
        ("per_customer", "SUCCEEDED"),
    ]
    assert "SUCCEEDED" in shop("jobs", "-n", "1").out
    assert shop("tick").out == "nothing was due, or nothing has changed\n"


def test_a_tick_in_which_a_refresh_fails_says_so_and_fails(shop: Cli) -> None:
    shop("create", "share", "SELECT 1 / (amount - 7) AS x FROM orders", "--schedule", "1s")
    shop("sql", "INSERT INTO orders VALUES (9, 'eve', 7)")
    _wait_until_due()
    failed = shop("tick", "--json")
    assert failed.code == 3
    assert {row["name"]: row["action"] for row in failed.document}["share"] == "FAILED"
    assert (failed.error["code"], failed.error["hint"]) == ("REFRESH_FAILED", "trickle why share")
    assert failed.error["message"].startswith("refreshes failed: 1 of ")
    told = shop("why", "share").out
    assert re.search(r"^last in the history, .*: FULL, failed$", told, re.MULTILINE)


def test_why_is_told_as_in_python(shop: Cli) -> None:
    shop("source", "gate", "orders", "--by", "etl")
    lines = shop.document("why", "per_customer")
    printed = shop("why", "per_customer").out.splitlines()
    # Each is told as of the moment at which it is asked.
    assert [line for line in printed if "cut:" not in line] == [line for line in lines if "cut:" not in line]
    assert any("source orders is gated by etl" in line for line in lines)


def test_schedulers_are_paused_drained_and_resumed(cli: Cli) -> None:
    assert cli("scheduler", "status").out == "scheduler STOPPED: 0 running, 0 queued, 4 of 4 workers idle\n"
    paused = cli("scheduler", "pause", "--reason", "upgrade", "--by", "ada").out
    assert paused.startswith("scheduler PAUSED, paused by ada: upgrade: 0 running")
    assert cli.document("scheduler", "drain", "--timeout", "1")["state"] == "DRAINED"
    assert "drained by" in cli("scheduler", "status").out
    resumed = cli.document("scheduler", "resume")
    assert (resumed["state"], resumed["workers"]["workers"]) == ("STOPPED", 4)


def test_groups_are_declared_and_dropped(shop: Cli) -> None:
    assert shop("group", "list").out == "no groups yet: trickle group create NAME MEMBER...\n"
    made = shop("group", "create", "sales", "per_customer", "grand", "--isolation", "repeatable_read")
    assert made.out == "refresh group sales created: grand, per_customer, REPEATABLE_READ\n", made.err
    assert [row["name"] for row in shop.document("group", "list")] == ["sales"]
    assert "REPEATABLE_READ" in shop("group", "list").out
    assert shop("group", "drop", "sales").out == "dropped refresh group sales\n"
    assert shop("group", "drop", "sales").code == 2


def test_the_graph_is_drawn(shop: Cli) -> None:
    assert shop("dag").out == "grand\n└── per_customer\n    └── orders\n"
    assert shop("dag", "per_customer").out == "per_customer\n└── orders\n"
    assert [row["depth"] for row in shop.document("dag")] == [0, 1, 2]
    assert shop("dag", "--format", "mermaid").out.startswith("flowchart LR")
    assert shop.document("dag", "--format", "dot")["text"].startswith("digraph")
    assert shop("dag", "--format", "png").code == 2


def test_an_empty_warehouse(cli: Cli) -> None:
    assert cli("tick").out == "nothing was due, or nothing has changed\n"
    assert cli("jobs").out == "no jobs yet: trickle run, or trickle tick\n"
    assert cli("dag").out == "no stream tables yet\n"
    assert cli("why", "nothing").code == 2


def test_the_daemon_logs_to_stderr_and_ends_cleanly(cli: Cli) -> None:
    with subprocess.Popen(
        [*COMMAND, "-w", str(cli.warehouse), "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        first = process.stderr.readline()
        assert cli.document("scheduler", "status")["state"] == "LEADING"
        refused = cli("tick", "--json")
        assert (refused.code, refused.error["code"]) == (4, "CONCURRENT_MODIFICATION")
        process.send_signal(signal.SIGTERM)
        out, rest = process.communicate(timeout=PATIENCE)
        patience.cancel()
    assert re.search(r"level=INFO logger=trickle.scheduler event=leading holder=\S+ token=1$", first.rstrip())
    assert rest.rstrip().endswith("event=stopped why=SIGTERM")
    assert (process.returncode, out) == (0, "")


def _wait_until_due() -> None:
    """Schedules are at least a second, and the command line has the clock of the machine."""
    threading.Event().wait(1.1)
