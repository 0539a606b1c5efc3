from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from trickle.algebra.weights import WEIGHT
from trickle.sources.postgres.netting import net_texts

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["x", ""]), st.sampled_from([1, -1])))


def table(rows: Sequence[tuple[str | None, str, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.string(), pa.string(), pa.int64())
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], ["k", "v", WEIGHT])


@given(ROWS)
def test_the_net_has_the_same_sum_and_nothing_that_cancels(rows: list[tuple[str | None, str, int]]) -> None:
    wanted: Counter[tuple[str | None, str]] = Counter()
    for key, value, weight in rows:
        wanted[key, value] += weight
    found: Counter[tuple[str | None, str]] = Counter()
    for row in net_texts(table(rows)).to_pylist():
        found[row["k"], row["v"]] += row[WEIGHT]
    assert {k: n for k, n in found.items() if n} == {k: n for k, n in wanted.items() if n}
    mixed = {weight for *_, weight in rows} == {1, -1}
    assert not mixed or all(found.values())


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """What happened to the rows of a table with a key, in any order."""
    there: dict[str, str] = draw(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy")))
    changes: list[tuple[str, str, int]] = []
    for key, value in draw(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y", None])))):
        if key in there:
            changes.append((key, there.pop(key), -1))
        if value is not None:
            there[key] = value
            changes.append((key, value, 1))
    return draw(st.permutations(changes))


@given(histories())
def test_by_key_the_net_is_the_same(changes: list[tuple[str, str, int]]) -> None:
    wanted: Counter[tuple[str, str]] = Counter()
    for key, value, weight in changes:
        wanted[key, value] += weight
    rows = net_texts(table(changes), ["k"]).to_pylist()
    found = {(row["k"], row["v"]): row[WEIGHT] for row in rows}
    assert len(found) == len(rows), "every row once"
    assert found == {row: weight for row, weight in wanted.items() if weight}


def test_keys_of_several_columns_are_not_mixed_up() -> None:
    rows = table([("a", "bc", -1), ("ab", "c", 1), ("d", "e", 1), ("d", "e", -1)])
    assert net_texts(rows, ["k", "v"]).num_rows == 2
