"""What is left of a unit that failed: its staged files go, unless the unit will happen or has happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trickle.catalog import intents, pins
from trickle.catalog.outside import Polled, Replica
from trickle.errors import CatalogUnreachable
from trickle.lake.prepared import Prepared
from trickle.warehouse import Warehouse


def give_up(warehouse: Warehouse, replicas: Sequence[Replica | Polled], prepared: Mapping[int, Prepared]) -> None:
    """Discard what was staged for replicas whose pin has not moved and is not about to."""
    try:
        with warehouse.catalog.read() as tx:
            now = pins.of(tx, prepared.keys())
            intended = {m.relation_id for i in intents.pending(tx, list(prepared)) for m in i.members}
    except CatalogUnreachable:
        return  # Whether the intent stands is not known: vacuum removes what nobody refers to.
    for replica in replicas:
        relation_id = replica.relation.id
        made, pin = prepared.get(relation_id), now.get(relation_id)
        if made is not None and relation_id not in intended and pin is not None and pin.number == replica.pin.number:
            made.discard()
