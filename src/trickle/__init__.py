"""Trickle keeps SQL results fresh on Apache Spark."""

from trickle.api import Trickle, connect
from trickle.errors import TrickleError
from trickle.refresh.execute import RefreshResult
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
