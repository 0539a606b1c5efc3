"""The exception tree: every class documented, told apart by code, with the remedy in its place in the tree."""

from __future__ import annotations

import inspect
import re

import pytest

from trickle import errors
from trickle.errors import ParseError, TrickleError, UnknownTable

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, TrickleError)]


def test_a_message_is_followed_by_code_detail_and_hint() -> None:
    error = UnknownTable("unknown table ordres", detail="the schema is default", hint="did you mean orders?")
    assert str(error) == (
        "unknown table ordres [UNKNOWN_TABLE]\ndetail: the schema is default\nhint: did you mean orders?"
    )
    assert str(UnknownTable("unknown table t")) == "unknown table t [UNKNOWN_TABLE]"


def test_an_error_is_data_for_programs() -> None:
    assert UnknownTable("unknown table t", hint="create it").as_dict() == {
        "code": "UNKNOWN_TABLE",
        "message": "unknown table t",
        "detail": None,
        "hint": "create it",
    }


def test_a_parse_error_knows_its_place() -> None:
    error = ParseError("unexpected word", line=2, column=7)
    assert (error.line, error.column) == (2, 7)


def test_codes_are_unique_and_written_alike() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z_]+", code) for code in codes)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_tree_at_the_head_of_the_module_names_every_class(kind: type[TrickleError]) -> None:
    assert re.search(rf"\b{kind.__name__}\b", errors.__doc__ or "")
    assert kind.__doc__


@pytest.mark.parametrize("kind", CLASSES)
def test_the_exit_code_follows_from_the_remedy(kind: type[TrickleError]) -> None:
    remedies = {kind.exit_code for kind in CLASSES if kind.__base__ is TrickleError}
    assert kind is TrickleError or kind.exit_code in remedies
    for parent in kind.__mro__[1:]:
        if issubclass(parent, TrickleError) and parent is not TrickleError:
            assert kind.exit_code == parent.exit_code
