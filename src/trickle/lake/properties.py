"""Table properties that users may set. Those of Delta change what every writer must do: only known ones pass."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trickle.algebra.names import nearest
from trickle.errors import InvalidOption

_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
_COUNT = re.compile(r"[1-9]\d{0,8}")
_INTERVAL = re.compile(r"interval \d+ (?:week|day|hour|minute|second)s?", re.IGNORECASE)

KNOWN = {
    "delta.appendOnly": (_BOOLEAN, "true or false"),
    "delta.checkpointInterval": (_COUNT, "a number of commits"),
    "delta.deletedFileRetentionDuration": (_INTERVAL, "an interval such as 'interval 7 days'"),
    "delta.enableExpiredLogCleanup": (_BOOLEAN, "true or false"),
    "delta.logRetentionDuration": (_INTERVAL, "an interval such as 'interval 30 days'"),
}


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties of Delta that are unknown, wrong, or ask for a feature that Trickle does not write."""
    for key, value in properties.items():
        if not key.lower().startswith("delta."):
            continue
        if key not in KNOWN:
            close = nearest(key, KNOWN)
            raise InvalidOption(
                f"table property {key!r} cannot be set",
                hint=f"did you mean {close!r}?" if close else "properties: " + ", ".join(KNOWN),
            )
        pattern, meaning = KNOWN[key]
        if not pattern.fullmatch(value):
            raise InvalidOption(f"table property {key!r} takes {meaning}, not {value!r}")
