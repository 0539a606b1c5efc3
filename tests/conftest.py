"""What all tests share: the engine of the run, chosen with ``--engine``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from trickle.engine import Engine

ENGINES = {
    "local": "local[2]",
    "local-cluster": "local-cluster[2,1,1024]",
    "connect": "remote:local[2]",
}

# A database of failed examples makes the next run begin with them; a slow machine is no failure.
settings.register_profile("trickle", deadline=None, print_blob=True)
settings.load_profile("trickle")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=sorted(ENGINES), default="local", help="the Spark session that tests run on")


@pytest.fixture(scope="session")
def kind(pytestconfig: pytest.Config) -> str:
    """The engine of this run: local, local-cluster or connect."""
    return str(pytestconfig.getoption("--engine"))


@pytest.fixture(scope="session")
def engine(kind: str) -> Iterator[Engine]:
    """One Spark session for the whole run."""
    os.environ.setdefault("TRICKLE_DRIVER_MEMORY", "2g")
    engine = Engine.open(ENGINES[kind])
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def spark(engine: Engine) -> SparkSession:
    return engine.spark
