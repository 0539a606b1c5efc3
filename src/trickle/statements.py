"""Runs parsed statements: one function per statement, found by its class."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from types import UnionType
from typing import Any, assert_never, get_args, get_origin, get_type_hints

from pyspark.sql import DataFrame

from trickle.algebra.names import TableName, nearest
from trickle.catalog import preferences, relations
from trickle.errors import InvalidOption, UnknownFunction
from trickle.immediate import definition
from trickle.immediate.postgres.hosting import settle_all
from trickle.publish.following import follow
from trickle.refresh.definition import Definition, set_suspended
from trickle.refresh.outcome import RefreshResult
from trickle.settings import check_name, parse_value, spell
from trickle.sql import (
    AlterStreamTable,
    AlterTable,
    Call,
    CreateStreamTable,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    DropStreamTable,
    Explain,
    Insert,
    Merge,
    RefreshStreamTable,
    Select,
    SetOption,
    ShowTables,
    Statement,
    Truncate,
    Update,
    parse,
)
from trickle.tables import dml
from trickle.tables.alter import alter_table
from trickle.tables.ddl import create_table, create_view, drop_relation
from trickle.tables.describe import ColumnRow, describe, describe_extended
from trickle.tables.explain import explain
from trickle.tables.merge import merge
from trickle.tables.results import Changed, Done, Listing
from trickle.tables.system import listing
from trickle.warehouse import Warehouse

Result = DataFrame | Changed | Done | Listing | RefreshResult | None
Procedures = Mapping[str, Callable[..., object]]


def run(warehouse: Warehouse, text: str, procedures: Procedures) -> Result:
    """Run every statement of a text; the last one's result. All are parsed before the first one runs."""
    with warehouse.catalog.read() as tx:
        depth = warehouse.settings(tx).max_parse_depth
    result: Result = None
    for statement in parse(text, max_depth=depth):
        result = run_statement(warehouse, statement, procedures)
    return result


def run_statement(warehouse: Warehouse, statement: Statement, procedures: Procedures) -> Result:
    """Run one statement."""
    match statement:
        case Select():
            return dml.resolve_now(warehouse, statement.query).bind(statement.query)
        case Explain():
            return explain(warehouse, statement)
        case Describe():
            rows = describe_extended(warehouse, statement.name) if statement.extended else None
            return rows or listing(describe(warehouse, statement.name), ColumnRow)
        case ShowTables():
            return _show_tables(warehouse, statement)
        case SetOption():
            return _set_option(warehouse, statement)
        case Call():
            return _call(statement, procedures)
        case CreateStreamTable() | AlterStreamTable() | DropStreamTable() | RefreshStreamTable():
            return _stream_statement(warehouse, statement)
        case CreateTable() | CreateView() | AlterTable() | Drop():
            return _definition_statement(warehouse, statement)
        case Insert() | Update() | Delete() | Merge() | Truncate():
            return _change_statement(warehouse, statement)
    assert_never(statement)


def _definition_statement(warehouse: Warehouse, statement: CreateTable | CreateView | AlterTable | Drop) -> Done:
    match statement:
        case CreateTable():
            return create_table(warehouse, statement)
        case CreateView():
            return create_view(warehouse, statement)
        case AlterTable():
            return alter_table(warehouse, statement)
        case Drop():
            gone = drop_relation(warehouse, statement)
            settle_all(warehouse)
            return gone
    assert_never(statement)


def _change_statement(warehouse: Warehouse, statement: Insert | Update | Delete | Merge | Truncate) -> Changed:
    match statement:
        case Insert():
            return dml.insert(warehouse, statement)
        case Update():
            return dml.update(warehouse, statement)
        case Delete():
            return dml.delete(warehouse, statement)
        case Merge():
            return merge(warehouse, statement)
        case Truncate():
            return dml.truncate(warehouse, statement)
    assert_never(statement)


def _stream_statement(
    warehouse: Warehouse, statement: CreateStreamTable | AlterStreamTable | DropStreamTable | RefreshStreamTable
) -> Result:
    match statement:
        case CreateStreamTable():
            return _create_stream_table(warehouse, statement)
        case AlterStreamTable(name=name, action="set"):
            text = None if statement.query is None else statement.query.text
            definition.alter(warehouse, name, text, statement.options)
            follow(warehouse, [name])
            return Done(f"stream table {name} altered")
        case AlterStreamTable(name=name, action=action):
            set_suspended(warehouse, name, suspended=action == "suspend")
            return Done(f"stream table {name} {'suspended' if action == 'suspend' else 'resumed'}")
        case DropStreamTable():
            if statement.if_exists and not _exists(warehouse, statement.name):
                return Done(f"stream table {statement.name} does not exist")
            gone = definition.drop_stream_table(warehouse, statement.name, cascade=statement.cascade)
            return Done("dropped " + ", ".join(str(relation.name) for relation in gone))
        case RefreshStreamTable():
            return definition.refresh(warehouse, statement.name, force=statement.force)
    assert_never(statement)


def _create_stream_table(warehouse: Warehouse, statement: CreateStreamTable) -> Done:
    if statement.if_not_exists and _exists(warehouse, statement.name):
        return Done(f"stream table {statement.name} exists already")
    options = dict(statement.options)
    initialize = options.pop("initialize", True)
    if not isinstance(initialize, bool):
        raise InvalidOption(f"option initialize is true or false, not {initialize!r}")
    wanted = Definition.of(warehouse, statement.name, statement.query.text, options)
    make = definition.create_or_replace if statement.or_replace else definition.create_stream_table
    make(warehouse, wanted, initialize=initialize)
    follow(warehouse, [statement.name])
    return Done(f"stream table {statement.name} created")


def _exists(warehouse: Warehouse, name: TableName) -> bool:
    with warehouse.catalog.read() as tx:
        return relations.find(tx, name) is not None


def _show_tables(warehouse: Warehouse, statement: ShowTables) -> Listing:
    with warehouse.catalog.read() as tx:
        found = relations.listing(tx, statement.schema)
    pattern = (statement.like or "*").replace("%", "*").lower()
    rows = [(r.name.schema, r.name.table, r.kind.value) for r in found if fnmatch(r.name.table_key, pattern)]
    return Listing(("schema", "name", "kind"), tuple(rows))


def _set_option(warehouse: Warehouse, statement: SetOption) -> Done:
    check_name(statement.name)
    value = None if statement.value is None else parse_value(statement.name, statement.value)
    with warehouse.catalog.write() as tx:
        if statement.value is None:
            preferences.clear(tx, statement.name)
        else:
            preferences.put(tx, statement.name, str(statement.value), now=warehouse.clock.now())
    # An address may hold a secret.
    shown = "its default" if value is None else "set" if statement.name == "alert_webhook" else spell(value)
    return Done(f"trickle.{statement.name} is {shown}")


def _call(statement: Call, procedures: Procedures) -> Result:
    name = statement.name.lower()
    if name not in procedures:
        close = nearest(name, procedures)
        raise UnknownFunction(
            f"no procedure trickle.{name}",
            hint=f"did you mean trickle.{close}?" if close else "procedures: " + ", ".join(sorted(procedures)),
        )
    procedure = procedures[name]
    _check_arguments(name, procedure, statement)
    return _as_result(procedure(*statement.args, **statement.kwargs))


def _check_arguments(name: str, procedure: Callable[..., object], statement: Call) -> None:
    """Refuse arguments that the procedure does not take, or not of that type."""
    signature = inspect.signature(procedure)
    try:
        given = signature.bind(*statement.args, **statement.kwargs)
    except TypeError as error:
        raise InvalidOption(f"wrong arguments for trickle.{name}", detail=str(error)) from None
    hints = get_type_hints(procedure)
    for parameter, value in given.arguments.items():
        options = signature.parameters[parameter].kind is inspect.Parameter.VAR_KEYWORD
        if not options and not _fits(value, hints[parameter]):
            raise InvalidOption(f"wrong arguments for trickle.{name}", detail=f"{parameter} cannot be {value!r}")


def _fits(value: object, hint: Any) -> bool:
    """Whether a literal of SQL has the type that a parameter wants. TRUE is no number."""
    if isinstance(hint, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    wanted = get_origin(hint) or hint
    if wanted is float:
        return type(value) in (int, float)
    return type(value) is wanted if wanted in (bool, int, str, type(None)) else isinstance(value, wanted)


def _as_result(found: Any) -> Result:
    """What a procedure returned, as rows."""
    match found:
        case None:
            return None
        case DataFrame() | Changed() | Done() | Listing() | RefreshResult():
            return found
        case list() if found and dataclasses.is_dataclass(found[0]):
            return listing(found, type(found[0]))
        case list():
            return Listing(("value",), tuple((value,) for value in found))
        case _ if dataclasses.is_dataclass(found):
            return listing([found], type(found))
        case _:
            return Listing(("value",), ((found,),))
