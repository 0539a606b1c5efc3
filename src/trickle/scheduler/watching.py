"""What somebody should hear about and no refresh tells: data that grows old, loaders that have fallen silent."""

from __future__ import annotations

from datetime import datetime, timedelta

from trickle.catalog.records import Event
from trickle.scheduler.recording import alert_once
from trickle.scheduler.state import Memory, State
from trickle.settings import parse_duration, show_duration
from trickle.warehouse import Warehouse


def watch_over(warehouse: Warehouse, memory: Memory, state: State) -> None:
    """Raise the alerts of this tick; each once, until its cause has passed."""
    for table in state.tables.values():
        deadline = parse_duration(str(table.options.get("freshness_deadline", "")))
        if deadline is not None and table.data_timestamp is not None:
            age = state.now - table.data_timestamp
            payload = {
                "stream_table": str(table.name),
                "data_timestamp": table.data_timestamp.isoformat(),
                "age_seconds": round(age.total_seconds()),
                "freshness_deadline": show_duration(deadline),
            }
            alert_once(warehouse, memory, Event.STALE_DATA, table.id, age > deadline, payload)
    silence = state.definitions.settings.watermark_stuck_after
    if silence > timedelta():
        _stuck(warehouse, memory, state, state.now - silence)


def _stuck(warehouse: Warehouse, memory: Memory, state: State, since: datetime) -> None:
    for source, watermark in state.board.watermarks.items():
        payload = {
            "source": str(watermark.name),
            "watermark": watermark.watermark.isoformat(),
            "advanced_at": watermark.updated_at.isoformat(),
        }
        alert_once(warehouse, memory, Event.WATERMARK_STUCK, source, watermark.updated_at < since, payload)
