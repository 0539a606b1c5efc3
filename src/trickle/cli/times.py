"""Moments as people read them."""

from __future__ import annotations

from datetime import datetime


def when(moment: datetime | None) -> str | None:
    """A moment in the time zone of the reader."""
    return None if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
