"""Which capture an attached database has."""

from __future__ import annotations

import uuid

from trickle.catalog.outside import Database
from trickle.errors import InvalidOption
from trickle.postgres.connect import Connection
from trickle.settings import Settings
from trickle.sources.postgres.buffers import TriggerCapture
from trickle.sources.postgres.capture import Capture
from trickle.sources.postgres.polling import PollingCapture
from trickle.sources.postgres.triggers import Style
from trickle.sources.postgres.wal import WalCapture

MODES = ("auto", "trigger", "wal", "polling")
"""What can be asked for; ``auto`` takes what the database allows, the WAL first."""

TRIGGER, WAL, POLLING = TriggerCapture.mode, WalCapture.mode, PollingCapture.mode

CAPTURE = "capture"
"""The option of a database that names the capture that counts."""
SCHEDULE = "schedule"
"""The option that says how often the tables of a polled database are read."""
SLOT = "slot"
"""The option that names its slot and its publication, and whose last part marks its buffers and triggers."""
_PREFIX = "trickle_"


def check_mode(mode: str) -> str:
    """A mode of capture; refuses others."""
    word = mode.strip().lower()
    if word not in MODES:
        raise InvalidOption(f"no capture {mode!r}", hint="cdc_mode is one of " + ", ".join(MODES))
    return word


def capture_of(database: Database, connection: Connection, settings: Settings) -> Capture:
    """The capture of a database over a connection: the one that counts."""
    return capture_named(mode_of(database), database, connection, settings)


def mode_of(database: Database) -> str:
    """The mode of the capture that counts."""
    return str(database.options.get(CAPTURE, TRIGGER))


def capture_named(mode: str, database: Database, connection: Connection, settings: Settings) -> Capture:
    """The capture of this mode, whether it counts or not."""
    if mode == WAL:
        return wal_of(database, connection, settings)
    if mode == POLLING:
        return PollingCapture(connection)
    return TriggerCapture(connection, style_of(database, settings))


def wal_of(database: Database, connection: Connection, settings: Settings) -> WalCapture:
    """The WAL capture of a database."""
    return WalCapture(
        connection,
        str(database.options[SLOT]),
        warning_mb=settings.slot_lag_warning_mb,
        critical_mb=settings.slot_lag_critical_mb,
    )


def style_of(database: Database, settings: Settings) -> Style:
    """How the buffers of a database are made: as it was attached."""
    options = database.options
    return Style(
        owner=str(options[SLOT]).removeprefix(_PREFIX),
        schema=str(options.get("schema", settings.capture_schema)),
        row_level=options.get("trigger_mode", settings.cdc_trigger_mode) == "row",
        unlogged=bool(options.get("unlogged", settings.unlogged_buffers)),
        guarded=settings.on_source_ddl == "refuse",
    )


def options_of(settings: Settings) -> dict[str, object]:
    """What is fixed when a database is attached: buffers that are there do not follow a setting."""
    return {
        CAPTURE: TRIGGER,
        # A server has one space of names for the slots of all its databases and of everybody who attaches them.
        SLOT: _PREFIX + uuid.uuid4().hex,
        "schema": settings.capture_schema,
        "trigger_mode": settings.cdc_trigger_mode,
        "unlogged": settings.unlogged_buffers,
    }
