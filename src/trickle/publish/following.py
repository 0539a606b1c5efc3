"""Publications follow their stream tables: after a refresh, outside of it, and again until it works.

A publication that fails does not touch the refresh that it follows. It is said in the catalog and as an alert, and the
next refresh, or the scheduler, tries again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from trickle.algebra.names import TableName
from trickle.catalog import alerts, publications, relations
from trickle.catalog.outside import Publication
from trickle.catalog.records import Event
from trickle.errors import ConcurrentModification, TrickleError
from trickle.publish.bring import Published, bring
from trickle.warehouse import Warehouse

_logger = logging.getLogger(__name__)
_FIRST_REST = 1.0
_LONGEST_REST = 60.0


@dataclass
class Patience:
    """Publications that failed: until when they are left alone, and for how long that is."""

    resting: dict[int, tuple[float, float]] = field(default_factory=dict)

    def is_resting(self, publication: int) -> bool:
        return time.monotonic() < self.resting.get(publication, (0.0, 0.0))[0]

    def failed(self, publication: int) -> None:
        _, rest = self.resting.get(publication, (0.0, 0.0))
        rest = min(max(_FIRST_REST, 2 * rest), _LONGEST_REST)
        self.resting[publication] = (time.monotonic() + rest, rest)

    def succeeded(self, publication: int) -> None:
        self.resting.pop(publication, None)


def follow(
    warehouse: Warehouse, names: Collection[TableName] | None = None, patience: Patience | None = None
) -> list[Published]:
    """Bring publications to the present that are behind, of all stream tables or of some; what was done.

    With ``patience``, those that failed lately are left alone for a while.
    """
    with warehouse.catalog.read() as tx:
        found = publications.behind(tx)
        if names is not None and found:
            wanted = {relation.id for name in names if (relation := relations.find(tx, name)) is not None}
            found = [one for one in found if one.relation.id in wanted]
    done = []
    for publication in found:
        if patience is not None and patience.is_resting(publication.id):
            continue
        try:
            moved = bring(warehouse, publication)
        except TrickleError as error:
            _note_failure(warehouse, publication, error)
            if patience is not None:
                patience.failed(publication.id)
            continue
        if patience is not None:
            patience.succeeded(publication.id)
        if moved is not None:
            done.append(moved)
    return done


def _note_failure(warehouse: Warehouse, publication: Publication, error: TrickleError) -> None:
    """Say in the catalog that a publication failed. What it follows has happened, so that nothing is raised."""
    try:
        try:
            _enter(warehouse, publication, error, publication.relation.id)
        except ConcurrentModification:
            # The stream table was dropped meanwhile, maybe after we looked: the alert names it by its name alone.
            _enter(warehouse, publication, error, None)
    except TrickleError as unsaid:
        _logger.warning(
            "the publication of %s failed: %s, and so did the note of it: %s", publication.relation.name, error, unsaid
        )


def _enter(warehouse: Warehouse, publication: Publication, error: TrickleError, relation_id: int | None) -> None:
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        publications.update(tx, publication.id, last_error=str(error), last_error_at=now)
        if publication.last_error is None:
            alerts.add(
                tx,
                event=Event.STALE_DATA.value,
                relation_id=relation_id,
                payload={
                    "publication": f"{publication.schema}.{publication.table}",
                    "stream_table": str(publication.relation.name),
                    "error": error.message,
                    "code": error.code,
                },
                now=now,
            )
