"""The triggers on the sources of a stream table (pure).

Triggers fire in the order of their names. A stream table that reads another must see a source's change before the other
does: then what it reads of the other is still at the state that it reflects. Readers are made later, so later numbers
come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trickle.immediate.postgres.faces import NEW_ROWS, OLD_ROWS, Event
from trickle.immediate.postgres.names import ours
from trickle.postgres.names import identifier

EVENTS = (Event.INSERT, Event.UPDATE, Event.DELETE)
_LAST = 9_999_999


@dataclass(frozen=True)
class Trigger:
    """A trigger: its name, when it fires, and the function of ours that it calls."""

    name: str
    when: str
    function: str

    def made_on(self, table: str) -> Iterator[str]:
        """The statements that make it on a table, which is named in SQL."""
        yield (
            f"CREATE TRIGGER {identifier(self.name)} {self.when.format(table=table)}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {ours(self.function)}()"
        )
        yield self.enabled_on(table)

    def enabled_on(self, table: str) -> str:
        """The statement that has it fire: also for those who replay changes with triggers off."""
        return f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {identifier(self.name)}"


def triggers(number: int, place: int) -> Iterator[Trigger]:
    """The triggers on one source of a stream table; ``place`` is the source's number."""
    stem = f"trickle_immediate_{_LAST - number:07d}"
    yield Trigger(f"{stem}_before", "BEFORE INSERT OR UPDATE OR DELETE ON {table}", f"before_{number}")
    yield Trigger(f"{stem}_truncate", "AFTER TRUNCATE ON {table}", f"truncate_{number}")
    for event in EVENTS:
        when = f"AFTER {event.upper()} ON {{table}}{_referencing(event)}"
        yield Trigger(f"{stem}_{event}", when, f"{event}_{number}_{place}")


def _referencing(event: Event) -> str:
    new, old = f" NEW TABLE AS {NEW_ROWS}", f" OLD TABLE AS {OLD_ROWS}"
    return " REFERENCING" + (new if event.has_new else "") + (old if event.has_old else "")
