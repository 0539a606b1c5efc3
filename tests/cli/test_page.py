from __future__ import annotations

from trickle.cli.page import Page, Record


def test_a_page_is_an_array_of_objects() -> None:
    assert Page(("a", "b"), ((1, None), (2, b"x"))).as_json() == [{"a": 1, "b": None}, {"a": 2, "b": "eA=="}]


def test_columns_of_the_same_name_keep_all_their_values() -> None:
    assert Page(("a", "a", "a"), ((1, 2, 3),)).as_json() == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_a_record_is_an_object() -> None:
    assert Record({"n": 1}, "one").as_json() == {"n": 1}
