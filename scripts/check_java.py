"""Says in one message what to do when Java is missing, before anything tries to start Spark."""

from __future__ import annotations

import sys

from trickle.engine.java import require_java
from trickle.errors import JavaMissing

try:
    require_java()
except JavaMissing as error:
    sys.exit(f"error: {error}")
