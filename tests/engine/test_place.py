"""What the argument ``spark`` means."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from trickle.engine.place import Given, LocalRemote, Master, Place, Remote, place_of
from trickle.errors import InvalidOption


@pytest.mark.parametrize(
    "argument, place",
    [
        (None, Master(None, {})),
        ("local[2]", Master("local[2]", {})),
        ("local-cluster[2,1,1024]", Master("local-cluster[2,1,1024]", {})),
        ("spark://host:7077", Master("spark://host:7077", {})),
        ("yarn", Master("yarn", {})),
        ("sc://host:15002/;token=x", Remote("sc://host:15002/;token=x", {})),
        ("remote:local[2]", LocalRemote("local[2]", {})),
    ],
)
def test_an_argument_means_a_place(argument: str | None, place: Place) -> None:
    assert place_of(argument, {}) == place


@pytest.mark.parametrize("argument", ["", "http://host", "localhost:15002", "remote:spark://host", "locall[2]"])
def test_anything_else_is_refused_with_the_three_forms(argument: str) -> None:
    with pytest.raises(InvalidOption, match="a Spark Connect address"):
        place_of(argument, {})


@pytest.mark.portable
def test_a_session_is_taken_and_its_kind_is_seen(spark: SparkSession, kind: str) -> None:
    place = place_of(spark, {})
    assert isinstance(place, Given)
    assert place.kind == ("connect" if kind == "connect" else "classic")
