"""How much a plan reads, told by what its leaves stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine, tuning
from trickle.operators import Face, Filter, Output, Project, Scan, Step, equal
from trickle.refresh.faces import Faces
from trickle.refresh.held import Held

CHANGE = Scan("t", (("a", "x"), ("b", "y")), Face.CHANGE)
PICKED = Project(Filter(CHANGE, equal("x", "y")), Output.keep(("x",)))
SHAPE = StructType([StructField(name, LongType()) for name in ("a", "b", WEIGHT)])
ROWS = 40


@pytest.fixture
def faces(engine: Engine) -> Iterator[Faces]:
    """A change of some rows, and what is picked from it as a step, and from that as another."""
    rows = pa.table([range(ROWS), range(ROWS), [1] * ROWS], names=SHAPE.names)
    with closing(Faces(engine, True)) as faces:
        faces.changes["t"] = Held(None, ROWS, rows, SHAPE)
        faces.steps["picked"] = faces.hold_step(PICKED)
        faces.steps["again"] = faces.hold_step(Project(Step("picked", (("x", "x"),)), (Output.keep(("x",)))))
        yield faces


@pytest.mark.parametrize("tree", [CHANGE, PICKED, Step("picked", (("x", "z"),)), Step("again", (("x", "z"),))])
@pytest.mark.parametrize("light, alone, load", [(41, 50, "light"), (40, 50, "alone"), (30, 40, "small")])
def test_what_is_picked_from_a_change_is_as_much_to_read(
    faces: Faces, monkeypatch: pytest.MonkeyPatch, tree: Scan | Project | Step, light: int, alone: int, load: str
) -> None:
    monkeypatch.setattr(tuning, "LIGHT_ROWS", light)
    monkeypatch.setattr(tuning, "ALONE_ROWS", alone)
    assert list(faces._counts(tree)) == [ROWS]
    assert faces.planned(tree).load == load


def test_rows_that_were_computed_are_counted_themselves(faces: Faces) -> None:
    faces.steps["held"] = Held(None, 3, pa.table({"x": [1, 2, 3]}), StructType([StructField("x", LongType())]))
    assert list(faces._counts(Step("held", (("x", "x"),)))) == [3]


def test_values_of_what_is_picked_belong_together(faces: Faces) -> None:
    rows = faces._values(Step("again", (("x", "x"),)), ["x"])
    assert rows is not None
    assert rows.column_names == ["x"]
    assert rows.num_rows == ROWS, "perhaps more than are picked"
    assert faces._values(Step("unknown", (("x", "x"),)), ["x"]) is None
