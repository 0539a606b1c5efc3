"""Refreshes several stream tables, each after those it reads; what stands on a failed one waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.catalog.records import Action, Status
from trickle.cli.working import working
from trickle.dag.graph import closure, order
from trickle.errors import TrickleError, was_interrupted
from trickle.refresh.outcome import RefreshResult
from trickle.sql.names import table_name

FAILED = "FAILED"


@dataclass(frozen=True)
class Outcome:
    """What happened to one stream table. The fields of a RefreshResult, known only where it was refreshed."""

    name: str
    action: str
    reason: str
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    duration_ms: float | None = None
    version: int | None = None
    spark_jobs: int | None = None


def refresh_in_order(
    t: Trickle, names: Sequence[str] | None, *, force: bool
) -> tuple[list[Outcome], TrickleError | None]:
    """Refresh the named stream tables, or all that are not suspended; every outcome, and the first error."""
    wanted = [table_name(name) for name in names] if names else _all(t)
    reads = _reads(t)
    outcomes: list[Outcome] = []
    broken: set[TableName] = set()
    first_error: TrickleError | None = None
    places = order(reads, wanted)
    for number, name in enumerate(places, 1):
        below = closure(reads, [name])
        if broken & below:
            outcomes.append(Outcome(str(name), Action.SKIP, "what it reads could not be refreshed"))
            continue
        try:
            with working(t.warehouse.engine, f"refreshing {name} ({number} of {len(places)})"):
                outcomes.append(_outcome(t.refresh_stream_table(str(name), force=force)))
        except TrickleError as error:
            if was_interrupted(error):
                raise
            broken.add(name)
            first_error = first_error or error
            outcomes.append(Outcome(str(name), FAILED, f"{error.message} [{error.code}]"))
    return outcomes, first_error


def _all(t: Trickle) -> list[TableName]:
    return [table_name(row.name) for row in t.status() if row.status != Status.SUSPENDED]


def _reads(t: Trickle) -> dict[TableName, set[TableName]]:
    """What each view and stream table reads."""
    reads: dict[TableName, set[TableName]] = {}
    for row in t.dependencies():
        reads.setdefault(table_name(row.name), set()).add(table_name(row.source))
    return reads


def _outcome(result: RefreshResult) -> Outcome:
    return Outcome(**vars(result))
