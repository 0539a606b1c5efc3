"""What a new leader finds: refreshes that its predecessors began and did not end."""

from __future__ import annotations

from trickle.catalog import history, intents, streams
from trickle.catalog.records import Initiator, Outcome
from trickle.history.failures import owner
from trickle.lake.stage import discard_stages
from trickle.warehouse import Warehouse


def close_predecessors(warehouse: Warehouse) -> int:
    """Close refreshes that schedulers elsewhere began; their number.

    Their tokens are old: whether they live or not, they can no longer commit. Units whose intent stands are not
    touched: they have been decided, and are rolled forward.
    """
    own = owner()
    with warehouse.catalog.read() as tx:
        intended = {member.refresh_id for intent in intents.pending(tx) for member in intent.members}
        left = [
            (record, streams.by_id(tx, record.relation_id))
            for record in history.running(tx)
            if record.initiated_by is Initiator.SCHEDULER
            and record.id not in intended
            and any(record.details.get(key) != value for key, value in own.items())
        ]
    for record, stream in left:
        prefix = record.details.get("stage")
        # One that has moved out of the lake has left nothing there.
        if isinstance(prefix, str) and stream.relation.location is not None:
            discard_stages(warehouse.location_of(stream.relation), prefix)
        with warehouse.catalog.write() as tx:
            history.finish(
                tx,
                record.id,
                status=Outcome.FAILED,
                now=warehouse.clock.now(),
                error_code="ABANDONED",
                error_message="another scheduler took over during the refresh; nothing was committed",
            )
    return len(left)
