"""A small warehouse with a unit of three: a base table, two stream tables on it, and one that joins both."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

import trickle
from trickle import Trickle
from trickle.apply.steps import Step
from trickle.catalog import history, intents
from trickle.lake.location import Location
from trickle.lake.log import LOG_FOLDER
from trickle.lake.snapshot import latest_version, open_snapshot
from trickle.lake.stages import INNER_FOLDER
from trickle.refresh.execute import refresh
from trickle.refresh.outcome import RefreshResult
from trickle.sql.names import table_name

UNIT = ("per_customer", "per_day", "both")
COMMITS = {"per_customer": 1, "per_day": 1, "both": 3}
"""The tables that a refresh commits: the last has two inner ones, for its two subqueries."""
OLD_SIDE = (Step.STARTED, Step.STAGED)
"""After these steps a lost process leaves the old contents; after all others the new ones."""


def points(names: tuple[str, ...]) -> list[tuple[Step, int]]:
    """Every step that a unit passes, in order."""
    walk = [(Step.STARTED, 0), (Step.STAGED, 0), (Step.INTENT_WRITTEN, 0)]
    walk += [(Step.TABLE_COMMITTED, number) for number in range(sum(COMMITS[name] for name in names))]
    return [*walk, (Step.TABLES_COMMITTED, 0), (Step.FINALISED, 0)]


def build(t: Trickle) -> None:
    """Make and fill everything, then change the base table so that a refresh has work to do."""
    t.sql(
        """
        CREATE TABLE orders (id BIGINT, customer STRING, day DATE, amount DECIMAL(12,2));
        INSERT INTO orders VALUES (1, 'ada', DATE'2026-01-01', 10), (2, 'bob', DATE'2026-01-01', 5.5),
                                  (3, NULL, DATE'2026-01-02', 1);
        CREATE STREAM TABLE per_customer WITH (refresh_mode = 'DIFFERENTIAL') AS
            SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
        CREATE STREAM TABLE per_day WITH (refresh_mode = 'DIFFERENTIAL') AS
            SELECT day, count(*) AS n FROM orders GROUP BY day;
        CREATE STREAM TABLE both WITH (refresh_mode = 'DIFFERENTIAL') AS
            SELECT (SELECT sum(total) FROM per_customer) AS total, (SELECT sum(n) FROM per_day) AS n;
        UPDATE orders SET amount = amount + 1 WHERE customer = 'ada';
        INSERT INTO orders VALUES (4, 'eve', DATE'2026-01-03', 7);
        """
    )


def refresh_unit(t: Trickle, names: tuple[str, ...]) -> list[RefreshResult]:
    """Refresh several stream tables as one unit."""
    return refresh(t.warehouse, [table_name(name) for name in names])


def contents(t: Trickle, names: tuple[str, ...] = UNIT) -> dict[str, list[tuple[object, ...]]]:
    """What readers see: the versions that the catalog pins, read by another reader, which is quick."""
    rows = {row.name: row for row in t.status()}
    return {name: _rows(str(rows[name].location), rows[name].version) for name in names}


def _rows(location: str, version: int | None) -> list[tuple[object, ...]]:
    table = DeltaTable(location, version=version).to_pyarrow_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def leftovers(t: Trickle) -> list[str]:
    """Staged files that no commit refers to, open intents and refreshes without an end: nothing of that may stay."""
    found: list[str] = []
    with t.warehouse.catalog.read() as tx:
        found += [f"intent {intent.id}" for intent in intents.pending(tx)]
        found += [f"running {record.name}" for record in history.running(tx)]
    for row in t.tables():
        if row.location is not None:
            found += _orphans(Location.of(row.location))
    return found


def _orphans(location: Location) -> list[str]:
    inner = {file.path.split("/")[1] for file in location.walk(INNER_FOLDER)}
    found = [orphan for name in sorted(inner) for orphan in _orphans(location.child(INNER_FOLDER, name))]
    newest = latest_version(location)
    known = {file.path for version in range(newest + 1) for file in open_snapshot(location, version).files}
    log = b"".join(location.read(file.path) or b"" for file in location.walk(LOG_FOLDER))
    staged = [f.path for f in location.walk() if not f.path.startswith((LOG_FOLDER, INNER_FOLDER))]
    return found + [f"{location.uri}/{path}" for path in staged if path not in known and path.encode() not in log]


def connect(folder: Path, spark: object) -> Trickle:
    """Open a warehouse on the shared session; this is also where recovery happens."""
    return trickle.connect(folder, spark=spark)  # type: ignore[arg-type]  # the session fixture's own type
