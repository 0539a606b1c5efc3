"""What all tests share: the engine of the run, chosen with ``--engine``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from tests.postgres import Postgres, running_postgres
from trickle.engine import Engine

ENGINES = {
    "local": "local[2]",
    "local-cluster": "local-cluster[2,1,1024]",
    "connect": "remote:local[2]",
}

# Tests start many small JVMs and run many small plans: the optimising compiler would never pay off. Without it, too
# little room is reserved for the code of so many plans, and it is thrown out and compiled again; each step by which the
# room for its classes grows would begin with a collection of all garbage.
os.environ.setdefault(
    "JAVA_TOOL_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m",
)

# A database of failed examples makes the next run begin with them; a slow machine is no failure.
settings.register_profile("trickle", deadline=None, print_blob=True)
settings.load_profile("trickle")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=sorted(ENGINES), default="local", help="the Spark session that tests run on")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The same cases in every run, so that a change is judged by itself; ``make fuzz`` looks for others."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = "0"


LONGEST = ("tests/tpch", "tests/oracle", "tests/nexmark", "tests/apply", "tests/demo", "tests/bench", "tests/docs")
"""Folders whose files take longest: they come first, so that no worker is left with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; otherwise as they were found."""

    def place(item: pytest.Item) -> int:
        folder = item.path.parent.as_posix()
        return next((n for n, one in enumerate(LONGEST) if folder.endswith(one)), len(LONGEST))

    items.sort(key=place)


def pytest_report_header(config: pytest.Config) -> str:
    return f"engine: {config.getoption('--engine')}, repeat with --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.fixture(scope="session")
def kind(pytestconfig: pytest.Config) -> str:
    """The engine of this run: local, local-cluster or connect."""
    return str(pytestconfig.getoption("--engine"))


@pytest.fixture(scope="session")
def engine(pytestconfig: pytest.Config) -> Iterator[Engine]:
    """One Spark session for the whole run."""
    os.environ.setdefault("TRICKLE_DRIVER_MEMORY", "4g")
    # Of every plan Spark writes a description for its UI, which no test looks at: the short one.
    config = {"spark.sql.ui.explainMode": "simple"}
    engine = Engine.open(ENGINES[pytestconfig.getoption("--engine")], config=config)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def spark(engine: Engine) -> SparkSession:
    return engine.spark


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL 18 for the whole run."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def logical_postgres() -> Iterator[Postgres]:
    """One PostgreSQL 18 for the whole run that lets its WAL be read."""
    with running_postgres(
        wal_level="logical", max_replication_slots="50", max_wal_senders="50", max_prepared_transactions="5"
    ) as server:
        yield server
