from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from trickle.cli.shell.completer import SqlCompleter

COMPLETER = SqlCompleter(lambda: ["orders", "sales.orders", "`order lines`"])


def offered(text: str, *, asked: bool = True) -> list[str]:
    event = CompleteEvent(completion_requested=asked)
    return [completion.text for completion in COMPLETER.get_completions(Document(text), event)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT * FROM ord", ["orders", "order"]),
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("SELECT * FROM sales.o", ["sales.orders"]),
        ("SELECT * FROM `ord", ["`order lines`"]),
        ("SELECT xyz", []),
    ],
)
def test_keywords_and_names_are_completed(text: str, expected: list[str]) -> None:
    found = offered(text)
    assert [word for word in found if word in expected] == expected
    assert expected or not found


def test_nothing_is_offered_before_a_letter_is_typed_unless_asked() -> None:
    assert offered("SELECT ", asked=False) == []
    assert "orders" in offered("SELECT ")
