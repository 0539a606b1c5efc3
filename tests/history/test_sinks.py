"""Alerts reach their sinks: in order, at least once, and a broken sink breaks nothing else."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from tests.postgres import Postgres
from trickle.catalog import Catalog, Severity, alerts, file_url, sinks
from trickle.catalog.records import Alert
from trickle.engine import Engine
from trickle.history.sinks import (
    LONGEST_NOTICE,
    Delivery,
    LogSink,
    NotifySink,
    WebhookSink,
    as_json,
    deliver,
    notice,
    sinks_of,
)
from trickle.lake.location import Location
from trickle.settings import Settings
from trickle.testing.clock import FakeClock
from trickle.warehouse import Warehouse


@contextmanager
def opened(url: str, folder: Path) -> Iterator[Warehouse]:
    catalog = Catalog.open(url)
    # No Spark is started: nothing asks for it.
    yield Warehouse(Location.of(str(folder)), catalog, Engine.open(), FakeClock(), Settings())
    catalog.close()


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with opened(file_url(tmp_path / "catalog.db"), tmp_path) as found:
        yield found


def raised(warehouse: Warehouse, event: str = "fuse_blown", /, **payload: object) -> Alert:
    with warehouse.catalog.write() as tx:
        return alerts.add(tx, event=event, now=warehouse.clock.now(), payload=payload)


@dataclass
class Heard:
    """A sink of the tests; fails while ``broken``."""

    name: str = "heard"
    ids: list[int] = field(default_factory=list)
    broken: bool = False

    def send(self, alert: Alert) -> None:
        if self.broken:
            raise ConnectionError("nobody there")
        self.ids.append(alert.id)


class Server:
    """A web server that answers with the given statuses in turn, the last one for ever."""

    def __init__(self, *statuses: int) -> None:
        self.bodies: list[dict[str, Any]] = []
        answers = list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805 - ``self`` is the server of the tests
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                self.bodies.append(json.loads(body))
                handler.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
                handler.send_header("Location", "/elsewhere")
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?key=secret"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_each_sink_hears_every_alert_once_and_in_order(warehouse: Warehouse) -> None:
    one, other = Heard("one"), Heard("other")
    made = [raised(warehouse).id for _ in range(3)]
    assert deliver(warehouse, [one]) == [Delivery("one", 3)]
    made.append(raised(warehouse).id)
    assert deliver(warehouse, [one, other]) == [Delivery("one", 1), Delivery("other", 4)]
    assert deliver(warehouse, [one, other]) == [Delivery("one", 0), Delivery("other", 0)]
    assert one.ids == other.ids == made
    assert deliver(warehouse, []) == []


def test_a_flood_is_delivered_whole(warehouse: Warehouse) -> None:
    with warehouse.catalog.write() as tx:
        made = [alerts.add(tx, event="stale_data", now=warehouse.clock.now()).id for _ in range(450)]
    heard = Heard()
    assert deliver(warehouse, [heard]) == [Delivery("heard", 450)]
    assert heard.ids == made


def test_a_broken_sink_keeps_its_place_and_holds_nobody_back(
    warehouse: Warehouse, caplog: pytest.LogCaptureFixture
) -> None:
    broken, well = Heard("broken", broken=True), Heard("well")
    first = raised(warehouse).id
    assert deliver(warehouse, [broken, well]) == [Delivery("broken", 0, "nobody there"), Delivery("well", 1)]
    second = raised(warehouse).id
    deliver(warehouse, [broken, well])
    with warehouse.catalog.read() as tx:
        cursor = sinks.find(tx, "broken")
    assert cursor is not None
    assert (cursor.failures, cursor.last_error) == (2, "nobody there")
    # Told once, not at every tick.
    assert [r.getMessage() for r in caplog.records] == ["alerts do not reach the sink broken: nobody there"]
    broken.broken = False
    assert deliver(warehouse, [broken, well]) == [Delivery("broken", 2), Delivery("well", 0)]
    assert broken.ids == well.ids == [first, second]


def test_a_new_sink_does_not_hear_the_whole_past(warehouse: Warehouse) -> None:
    raised(warehouse)
    assert isinstance(warehouse.clock, FakeClock)
    warehouse.clock.advance(timedelta(hours=2))
    lately = raised(warehouse).id
    warehouse.clock.advance(timedelta(minutes=30))
    heard = Heard()
    deliver(warehouse, [heard])
    assert heard.ids == [lately]


def test_a_catalog_that_is_gone_is_no_error_of_the_caller(warehouse: Warehouse, tmp_path: Path) -> None:
    raised(warehouse)
    warehouse.catalog.close()
    (tmp_path / "catalog.db").write_bytes(b"not a database" * 1000)
    [delivery] = deliver(warehouse, [Heard()])
    assert delivery.delivered == 0
    assert "CATALOG_UNREACHABLE" in str(delivery.error)


def test_the_log_has_a_line_and_its_fields(warehouse: Warehouse, caplog: pytest.LogCaptureFixture) -> None:
    alert = raised(warehouse, st_name="total", blow_reason="too much")
    raised(warehouse, "resumed")
    with caplog.at_level(logging.INFO, "trickle.alerts"):
        deliver(warehouse, [LogSink()])
    blown, resumed = caplog.records
    assert (blown.levelno, resumed.levelno) == (logging.CRITICAL, logging.INFO)
    assert blown.getMessage().startswith('fuse_blown {"st_name":"total","blow_reason":"too much"')
    assert vars(blown)["alert"] == as_json(alert)


def no_sleep() -> tuple[list[float], Callable[[float], None]]:
    slept: list[float] = []
    return slept, slept.append


def test_a_web_server_that_fails_twice_is_asked_again(warehouse: Warehouse) -> None:
    alert = raised(warehouse, st_name="total", delta_row_count=85432, event="not this")
    slept, sleep = no_sleep()
    with Server(500, 503, 204) as server:
        assert deliver(warehouse, [WebhookSink(server.url, sleep=sleep)]) == [Delivery("webhook", 1)]
    assert slept == [0.2, 1.0]
    assert server.bodies == 3 * [
        {
            "event": "fuse_blown",
            "severity": "CRITICAL",
            "alert_id": alert.id,
            "created_at": "2026-01-01T00:00:00+00:00",
            "st_name": "total",
            "delta_row_count": 85432,
        }
    ]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_a_web_server_does_not_take_is_kept_for_the_next_call(warehouse: Warehouse, status: int) -> None:
    raised(warehouse)
    _, sleep = no_sleep()
    with Server(status, status, status, 200) as server:
        [refused] = deliver(warehouse, [WebhookSink(server.url, sleep=sleep)])
        assert (refused.delivered, len(server.bodies)) == (0, 3)
        assert f"the webhook answered {status}" in str(refused.error)
        assert deliver(warehouse, [WebhookSink(server.url, sleep=sleep)]) == [Delivery("webhook", 1)]


def test_an_address_where_nobody_is_fails_without_being_told(warehouse: Warehouse) -> None:
    raised(warehouse)
    with Server(200) as server:
        pass
    sink = WebhookSink(server.url, waits=())
    [delivery] = deliver(warehouse, [sink])
    assert "the webhook does not answer" in str(delivery.error)
    assert "secret" not in str(delivery.error) + repr(sink)


def test_the_settings_say_which_sinks_there_are(warehouse: Warehouse) -> None:
    def names(settings: Settings) -> list[str]:
        return [sink.name for sink in sinks_of(warehouse, settings)]

    assert names(Settings()) == ["log"]
    assert names(Settings(alert_webhook="https://example.org/x")) == ["log", "webhook"]


def test_a_notice_that_is_too_long_says_where_to_read_it(warehouse: Warehouse) -> None:
    short = raised(warehouse, text="it's 🦆")
    assert json.loads(notice(short)) == as_json(short)
    room = LONGEST_NOTICE - len(notice(raised(warehouse, text=""))) - 4
    assert len(notice(raised(warehouse, text="x" * room))) > 7900
    long = raised(warehouse, text="🦆" * 3000)
    assert json.loads(notice(long)) == {
        "event": "fuse_blown",
        "severity": "CRITICAL",
        "alert_id": long.id,
        "created_at": "2026-01-01T00:00:00+00:00",
        "truncated": True,
    }


def test_who_listens_on_postgresql_hears_every_alert(postgres: Postgres, tmp_path: Path) -> None:
    with postgres.database() as url, opened(url, tmp_path) as warehouse:
        assert [sink.name for sink in sinks_of(warehouse, Settings())] == ["log", "notify"]
        sink = NotifySink(warehouse.catalog)
        with psycopg.connect(url, autocommit=True) as listener:
            listener.execute("LISTEN trickle_alert")
            made = [
                raised(warehouse, st_name="total"),
                raised(warehouse, "resumed", text="x" * 20_000),
                raised(warehouse, text="a" * (LONGEST_NOTICE - len(notice(raised(warehouse, text=""))))),
            ]
            [delivery] = deliver(warehouse, [sink])
            told = [json.loads(n.payload) for n in listener.notifies(timeout=10, stop_after=4)]
    assert delivery == Delivery("notify", 4)
    assert told[0] == as_json(made[0])
    assert (told[1]["alert_id"], told[1]["truncated"]) == (made[1].id, True)
    # The longest that PostgreSQL takes, to the byte; the one before it was made to measure it.
    assert told[3] == as_json(made[2])
    assert Severity(told[3]["severity"]) is Severity.CRITICAL
