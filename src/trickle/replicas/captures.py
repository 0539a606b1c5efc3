"""Which capture an attached database has."""

from __future__ import annotations

from trickle.catalog.records import Database
from trickle.errors import InvalidOption
from trickle.postgres.connect import Connection
from trickle.settings import Settings
from trickle.sources.postgres.buffers import TriggerCapture
from trickle.sources.postgres.capture import Capture
from trickle.sources.postgres.triggers import Style

MODES = ("auto", "trigger")
"""What can be asked for; ``auto`` takes what the database allows."""


def check_mode(mode: str) -> str:
    """A mode of capture; refuses others."""
    word = mode.strip().lower()
    if word not in MODES:
        raise InvalidOption(f"no capture {mode!r}", hint="cdc_mode is one of " + ", ".join(MODES))
    return word


def capture_of(database: Database, connection: Connection, settings: Settings) -> Capture:
    """The capture of a database over a connection."""
    return TriggerCapture(connection, style_of(database, settings))


def style_of(database: Database, settings: Settings) -> Style:
    """How the buffers of a database are made: as it was attached."""
    options = database.options
    return Style(
        schema=str(options.get("schema", settings.capture_schema)),
        row_level=options.get("trigger_mode", settings.cdc_trigger_mode) == "row",
        unlogged=bool(options.get("unlogged", settings.unlogged_buffers)),
        guarded=settings.on_source_ddl == "refuse",
    )


def options_of(settings: Settings) -> dict[str, object]:
    """What is fixed when a database is attached: buffers that are there do not follow a setting."""
    return {
        "schema": settings.capture_schema,
        "trigger_mode": settings.cdc_trigger_mode,
        "unlogged": settings.unlogged_buffers,
    }
