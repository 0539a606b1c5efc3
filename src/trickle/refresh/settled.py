"""Queries made definite: where SQL leaves the result open, one result is chosen, for every way of refreshing alike."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from trickle.algebra.names import TableName
from trickle.errors import UnsupportedQuery
from trickle.refresh.compiled import visible
from trickle.refresh.dependencies import DEEPEST
from trickle.sql import query
from trickle.sql.canonical import Canonical, canonical
from trickle.tables.reading import Reading

_Texts = tuple[tuple[TableName, str], ...]
_Schemas = tuple[tuple[TableName, tuple[tuple[str, str], ...]], ...]


def settled(text: str, reading: Reading) -> Canonical:
    """A query over what it reads, made definite. UnsupportedQuery where no fixed result can be written down."""
    return _canonical(text, _schemas(reading), _views(reading))


def with_settled_views(reading: Reading) -> Reading:
    """The same reading with the views that it looks through made definite, as far as that is possible."""
    if not reading.views:
        return reading
    schemas, views = _schemas(reading), _views(reading)
    found = {}
    for name, view in reading.views.items():
        try:
            text = _canonical(view.text, schemas, views).text
        except UnsupportedQuery:
            text = view.text
        found[name] = view if text == view.text else query(text, max_depth=DEEPEST)
    return replace(reading, views=found, _frames={})


@lru_cache(maxsize=512)
def _canonical(text: str, schemas: _Schemas, views: _Texts) -> Canonical:
    described = {name: dict(columns) for name, columns in schemas}
    return canonical(text, described, views=dict(views), max_depth=DEEPEST)


def _schemas(reading: Reading) -> _Schemas:
    found = {source.name: visible(reading.schema(source)) for source in reading.tables}
    return tuple(
        (name, tuple((field.name, field.dataType.simpleString()) for field in schema.fields))
        for name, schema in found.items()
    )


def _views(reading: Reading) -> _Texts:
    return tuple((name, view.text) for name, view in sorted(reading.views.items()))
