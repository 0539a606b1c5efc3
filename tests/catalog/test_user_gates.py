from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, user_gates
from trickle.errors import DuplicateName, InvalidOption, ParseError


def test_gates_are_registered_and_dropped(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        sql = user_gates.add(
            tx,
            "No NULLs",
            kind="sql",
            text="COUNT(*) = COUNT(id)",
            tables=[7, 3, 7],
            by="ada",
            now=given.now,
        )
        code = user_gates.add(tx, "fresh", kind="python", text="shop.gates:fresh", now=given.now)
    with catalog.read() as tx:
        assert user_gates.listing(tx) == [code, sql]
    assert (sql.name, sql.kind, sql.tables, sql.created_by) == ("No NULLs", "sql", (3, 7), "ada")
    assert (code.tables, code.created_by, code.created_at) == (None, None, given.now)
    with catalog.write() as tx:
        with pytest.raises(InvalidOption) as caught:
            user_gates.drop(tx, "frash")
        assert caught.value.hint == "did you mean 'fresh'?"
        user_gates.drop(tx, "no nulls")
        assert user_gates.listing(tx) == [code]


@pytest.mark.parametrize(
    "fields, error",
    [
        ({"kind": "lua"}, InvalidOption),
        ({"text": " "}, InvalidOption),
        ({"text": "x = '\x00'"}, ParseError),
    ],
)
def test_a_gate_that_cannot_be_is_refused(catalog: Catalog, given: Given, fields, error) -> None:
    usual: dict[str, Any] = {"kind": "sql", "text": "TRUE"}
    with catalog.write() as tx:
        with pytest.raises(error):
            user_gates.add(tx, "g", now=given.now, **usual | fields)
        user_gates.add(tx, "g", now=given.now, **usual)
        with pytest.raises(DuplicateName):
            user_gates.add(tx, "G", now=given.now, **usual)
