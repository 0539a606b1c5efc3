"""Alerts leave the catalog: to the log, to a web address, to whoever listens on PostgreSQL.

Each sink has a cursor in the catalog, hears the alerts in their order, and hears each one at least once: the cursor
moves after the delivery. Alerts are entered in the transaction of what they tell of and delivered later, so that no
sink can hold a refresh up or undo it. A sink that fails keeps its place and is tried again by the next ``deliver``;
the others go on. A sink that is new begins with what was raised shortly before, not with the whole past.

``deliver`` returns when every sink has answered or given up, which may take seconds: a scheduler calls it from a thread
of its own.
"""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from typing import Any, Protocol

from sqlalchemy import func, select

from trickle.catalog import alerts
from trickle.catalog import sinks as cursors
from trickle.catalog.records import Alert, Severity
from trickle.catalog.store import Catalog
from trickle.errors import TrickleError
from trickle.settings import Settings
from trickle.warehouse import Warehouse

CHANNEL = "trickle_alert"
NEW_SINKS_LOOK_BACK = timedelta(hours=1)
# PostgreSQL takes less than 8000 bytes.
LONGEST_NOTICE = 7999
_AT_ONCE = 200
_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}
_log = logging.getLogger("trickle.alerts")


class NotDelivered(TrickleError):
    """A sink did not take an alert."""

    code = "ALERT_NOT_DELIVERED"


class Sink(Protocol):
    """Somewhere that alerts are told."""

    @property
    def name(self) -> str:
        """What its cursor is called."""
        ...

    def send(self, alert: Alert) -> None:
        """Tell one alert; any exception means that it was not told."""
        ...


@dataclass(frozen=True)
class Delivery:
    """What one sink has heard in one call."""

    sink: str
    delivered: int
    error: str | None = None


@dataclass(frozen=True)
class LogSink:
    """The log of the process: a line for people, the fields for programs in ``record.alert``."""

    name: str = "log"

    def send(self, alert: Alert) -> None:
        fields = as_json(alert)
        _log.log(_LEVELS[alert.severity], "%s %s", alert.event, _encode(fields), extra={"alert": fields})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body: better an error than an alert that nobody reads."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class WebhookSink:
    """A web address that takes each alert as a POST with a JSON body."""

    url: str = field(repr=False)
    name: str = "webhook"
    timeout: float = 5.0
    waits: Sequence[float] = (0.2, 1.0)
    """Seconds before each further try."""
    sleep: Callable[[float], None] = time.sleep

    def send(self, alert: Alert) -> None:
        body = _encode(as_json(alert)).encode()
        for wait in self.waits:
            try:
                return self._post(body)
            except NotDelivered:
                self.sleep(wait)
        return self._post(body)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310 - the setting allows http and https only
            self.url, body, {"Content-Type": "application/json", "User-Agent": "trickle"}, method="POST"
        )
        try:
            with urllib.request.build_opener(_NoRedirects).open(request, timeout=self.timeout) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            error.close()
            status = error.code
        # The address may hold a secret: what went wrong is told without it.
        except (OSError, HTTPException, ValueError) as error:
            raise NotDelivered(f"the webhook does not answer: {type(error).__name__}", detail=str(error)) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook answered {status}")


@dataclass(frozen=True)
class NotifySink:
    """Everybody who listens on the catalog's PostgreSQL: ``LISTEN trickle_alert``."""

    catalog: Catalog
    name: str = "notify"

    def send(self, alert: Alert) -> None:
        with self.catalog.write() as tx:
            tx.execute(select(func.pg_notify(CHANNEL, notice(alert))))


def as_json(alert: Alert) -> dict[str, Any]:
    """An alert as sinks tell it: its payload, and what every alert has."""
    return {
        **alert.payload,
        "event": alert.event,
        "severity": alert.severity.value,
        "alert_id": alert.id,
        "created_at": alert.created_at.isoformat(),
    }


def notice(alert: Alert) -> str:
    """An alert as a PostgreSQL notification. One that is too long only says where to read it."""
    whole = _encode(as_json(alert))
    if len(whole) <= LONGEST_NOTICE:
        return whole
    fields = {"event", "severity", "alert_id", "created_at"}
    return _encode({**{name: value for name, value in as_json(alert).items() if name in fields}, "truncated": True})


def sinks_of(warehouse: Warehouse, settings: Settings) -> list[Sink]:
    """The sinks that the settings and the catalog give."""
    found: list[Sink] = [LogSink()]
    if settings.alert_webhook:
        found.append(WebhookSink(settings.alert_webhook))
    if warehouse.catalog.backend == "postgresql":
        found.append(NotifySink(warehouse.catalog))
    return found


def deliver(warehouse: Warehouse, sinks: Sequence[Sink]) -> list[Delivery]:
    """Tell every sink the alerts that it has not heard; never raises for what a sink or the catalog does."""
    if not sinks:
        return []
    with ThreadPoolExecutor(len(sinks), thread_name_prefix="trickle-alerts") as pool:
        return list(pool.map(lambda sink: _deliver_to(warehouse, sink), sinks))


def _deliver_to(warehouse: Warehouse, sink: Sink) -> Delivery:
    delivered, error = 0, None
    try:
        while error is None and (waiting := _waiting(warehouse, sink)):
            heard, error = _send_all(sink, waiting)
            delivered += heard
            last = waiting[heard - 1].id if heard else 0
            with warehouse.catalog.write() as tx:
                cursor = cursors.note(tx, sink.name, last, warehouse.clock.now(), error)
            # Once, however long it lasts.
            if cursor.failures == 1:
                _log.warning("alerts do not reach the sink %s: %s", sink.name, error)
    except TrickleError as failure:
        error = str(failure)
        _log.warning("alerts cannot be read for the sink %s: %s", sink.name, error)
    return Delivery(sink.name, delivered, error)


def _send_all(sink: Sink, waiting: Sequence[Alert]) -> tuple[int, str | None]:
    for number, alert in enumerate(waiting):
        try:
            sink.send(alert)
        except Exception as error:  # noqa: BLE001 - a sink may be anybody's code, and must not stop what called it
            return number, str(error) or type(error).__name__
    return len(waiting), None


def _waiting(warehouse: Warehouse, sink: Sink) -> list[Alert]:
    now = warehouse.clock.now()
    with warehouse.catalog.read() as tx:
        cursor = cursors.find(tx, sink.name)
        # Most calls end here, without a write.
        if cursor is not None and not alerts.after(tx, cursor.alert_id, 1):
            return []
    with warehouse.catalog.write() as tx:
        alerts.settle(tx)
        cursor = cursors.begin(tx, sink.name, now - NEW_SINKS_LOOK_BACK, now)
        return alerts.after(tx, cursor.alert_id, _AT_ONCE)


def _encode(fields: dict[str, Any]) -> str:
    # All ASCII: as many bytes as characters, and nothing that a database or a terminal cannot hold.
    return json.dumps(fields, separators=(",", ":"), default=str)
