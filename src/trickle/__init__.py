"""Trickle keeps SQL results fresh on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from trickle.errors import TrickleError

if TYPE_CHECKING:
    from trickle.api import Trickle, connect
    from trickle.refresh.outcome import RefreshResult
    from trickle.tables.results import Changed, Done, Listing

__version__ = "0.1.0"

__all__ = [
    "Changed",
    "Done",
    "Listing",
    "RefreshResult",
    "Trickle",
    "TrickleError",
    "__version__",
    "connect",
]

# Found when first asked for: a command that only prints its version need not import Spark.
_HOMES = {
    "Changed": "trickle.tables.results",
    "Done": "trickle.tables.results",
    "Listing": "trickle.tables.results",
    "RefreshResult": "trickle.refresh.execute",
    "Trickle": "trickle.api",
    "connect": "trickle.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
