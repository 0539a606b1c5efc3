from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trickle.postgres.arrays import read_array

ELEMENTS = st.lists(st.none() | st.text(max_size=6), max_size=8)


def written(elements: list[str | None]) -> str:
    """As PostgreSQL writes an array when it quotes every element."""
    quoted = ("NULL" if e is None else '"' + e.replace("\\", "\\\\").replace('"', '\\"') + '"' for e in elements)
    return "{" + ",".join(quoted) + "}"


@given(ELEMENTS)
def test_arrays_are_read_as_they_were_written(elements: list[str | None]) -> None:
    assert read_array(written(elements)) == elements
