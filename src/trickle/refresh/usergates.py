"""Gates of the user: a Python function or a SQL predicate over the staged change or the sources.

A predicate is a query that gives one row with one value, which is TRUE where the refresh may go on. It reads the staged
change under three names, ``inserted``, ``deleted`` and ``delta`` (both, with their weight as ``change``: +1 or -1), and
every table of the warehouse: sources as the refresh reads them.

    SELECT count(*) = 0 FROM inserted WHERE customer IS NULL

A function is handed the name of the stream table and the staged change as a DataFrame. It answers with True or False,
or with False and the reason. Functions that can be imported are known to every process by their module and name;
others, such as a lambda, only to the process that registered them: elsewhere the refresh waits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle.algebra.names import TableName, quote, visible
from trickle.algebra.weights import WEIGHT
from trickle.catalog import relations, streams, user_gates
from trickle.catalog.records import UserGate
from trickle.engine import spark_errors
from trickle.errors import InvalidOption, TrickleError
from trickle.gates.facts import UserAnswer
from trickle.gates.user import answered
from trickle.lake.snapshot import Snapshot
from trickle.lake.staged import staged_change
from trickle.refresh.board import Board
from trickle.refresh.making import Made
from trickle.refresh.members import Member
from trickle.sources.lake import LakePosition
from trickle.sql import names, query
from trickle.tables.reading import resolve
from trickle.warehouse import Warehouse

GateFunction = Callable[[str, DataFrame], object]


@dataclass(frozen=True)
class UserGateRow:
    """A gate that somebody registered."""

    name: str
    kind: str
    text: str
    tables: str | None
    """The stream tables that it is asked about; None for all."""
    created_at: datetime
    created_by: str | None


_LOCAL = "a function of the process that registered it"
_here: dict[tuple[str, str], GateFunction] = {}
"""Functions that this process registered, by catalog and name."""


def register(
    warehouse: Warehouse, name: str, gate: str | GateFunction, tables: Sequence[str] | None, by: str | None
) -> None:
    """Make a function or a predicate a gate, of some stream tables or of all."""
    if isinstance(gate, str):
        kind, text = "sql", gate
        query(gate)
    elif callable(gate):
        kind, text = "python", _import_path(gate)
        _here[warehouse.catalog.url_shown, name.lower()] = gate
    else:
        raise InvalidOption(f"a gate is a query or a function, not {gate!r}")
    with warehouse.catalog.write() as tx:
        ids = None if tables is None else [streams.get(tx, names.table_name(table)).relation.id for table in tables]
        user_gates.add(tx, name, kind=kind, text=text, tables=ids, by=by, now=warehouse.clock.now())


def listed(warehouse: Warehouse) -> list[UserGateRow]:
    """All gates that were registered."""
    with warehouse.catalog.read() as tx:
        found = user_gates.listing(tx)
        known = {relation.id: str(relation.name) for relation in relations.listing(tx)}
    return [
        UserGateRow(
            gate.name,
            gate.kind,
            gate.text,
            None if gate.tables is None else ", ".join(known[i] for i in gate.tables if i in known),
            gate.created_at,
            gate.created_by,
        )
        for gate in found
    ]


def unregister(warehouse: Warehouse, name: str) -> None:
    """Forget a gate."""
    with warehouse.catalog.write() as tx:
        user_gates.drop(tx, name)
    _here.pop((warehouse.catalog.url_shown, name.lower()), None)


def _import_path(function: GateFunction) -> str:
    """Where other processes find a function, or that they cannot."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    is_plain = module not in ("", "__main__") and name.isidentifier()
    return f"{module}:{name}" if is_plain else _LOCAL


@dataclass(frozen=True)
class _Staged:
    """A change that is asked about, and the sources as it was computed from them."""

    member: Member
    made: Made
    versions: Mapping[int, int]
    overlays: Mapping[int, Snapshot]
    """Tables whose next version is staged as well."""


def asked(
    board: Board,
    member: Member,
    made: Made,
    frontier: Mapping[int, LakePosition],
    overlays: Mapping[int, Snapshot] | None = None,
) -> list[UserAnswer]:
    """What the user's gates say of a staged change."""
    if made.own is None:
        return []  # Nothing changes that a gate could be asked about.
    own = member.stream.relation.id
    gates = [gate for gate in board.user_gates if gate.tables is None or own in gate.tables]
    versions = {source: position.version for source, position in frontier.items()}
    staged = _Staged(member, made, versions, {t: s for t, s in (overlays or {}).items() if t != own})
    return [_ask(board, gate, staged) for gate in gates]


def _ask(board: Board, gate: UserGate, staged: _Staged) -> UserAnswer:
    try:
        with spark_errors():
            return answered(gate.name, _answer(board, gate, staged, _change(board.warehouse, staged.made)))
    except TrickleError as error:
        return UserAnswer(gate.name, False, f"it failed: {error.message}")
    except Exception as error:  # noqa: BLE001 - a function of the user may raise anything, and then holds the refresh back
        return UserAnswer(gate.name, False, f"it failed: {type(error).__name__}: {error}")


def _answer(board: Board, gate: UserGate, staged: _Staged, change: DataFrame) -> Any:
    if gate.kind == "sql":
        return _predicate(board.warehouse, gate, staged, change)
    function = _here.get((board.warehouse.catalog.url_shown, gate.name.lower())) or _imported(gate)
    if function is None:
        return False, "it is a function of another process"
    return function(str(staged.member.name), change)


def _imported(gate: UserGate) -> GateFunction | None:
    if gate.text == _LOCAL:
        return None
    module, _, name = gate.text.partition(":")
    found: GateFunction = getattr(importlib.import_module(module), name)
    return found


def _predicate(warehouse: Warehouse, gate: UserGate, staged: _Staged, change: DataFrame) -> Any:
    text = query(gate.text)
    weight = F.col("change")
    given: dict[TableName, DataFrame] = {
        names.table_name("delta"): change,
        names.table_name("inserted"): change.where(weight > 0).drop("change"),
        names.table_name("deleted"): change.where(weight < 0).drop("change"),
    }
    with warehouse.catalog.read() as tx:
        reading = resolve(warehouse, tx, text, versions=staged.versions, overlays=staged.overlays, given=given)
    rows = reading.bind(text).limit(2).collect()
    if len(rows) != 1 or len(rows[0]) != 1:
        raise InvalidOption(
            f"gate {gate.name} gives {len(rows)} rows, not one value",
            hint="SELECT count(*) = 0 FROM inserted WHERE ...",
        )
    return rows[0][0]


def _change(warehouse: Warehouse, made: Made) -> DataFrame:
    """The staged change of a stream table with the columns that its readers see."""
    columns = visible(made.snapshot.schema.names)
    if made.own is None:
        raise InvalidOption("nothing is staged")
    rows = staged_change(warehouse.engine, made.snapshot, made.own, columns)
    return rows.select(*[F.col(quote(column)) for column in columns], F.col(WEIGHT).alias("change"))
