from __future__ import annotations

from trickle.sql.build.names import Names


def test_names_that_differ_in_case_are_the_same_name() -> None:
    names = Names()
    assert [names.fresh("Id"), names.fresh("id"), names.fresh("ID")] == ["Id", "id_1", "ID_2"]


def test_a_numbered_name_of_the_user_is_stepped_over() -> None:
    names = Names()
    assert [names.fresh("id_1"), names.fresh("id"), names.fresh("id")] == ["id_1", "id", "id_2"]


def test_reserved_names_are_never_given() -> None:
    names = Names()
    names.reserve(["X"])
    assert names.fresh("x") == "x_1"
