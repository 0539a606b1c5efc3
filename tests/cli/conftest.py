"""The command on warehouses made for tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trickle
from tests.cli.runner import Cli


@pytest.fixture
def bare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command where there is no warehouse yet."""
    return Cli(tmp_path / "wh", capsys)


@pytest.fixture
def cli(bare: Cli) -> Cli:
    """The command on an empty warehouse. No Spark is needed unless a statement asks for it."""
    assert bare("init").code == 0
    return bare


@pytest.fixture(scope="session")
def shop_template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a table, a view, and two stream tables of which one reads the other."""
    place = tmp_path_factory.mktemp("shop") / "wh"
    with trickle.connect(place, spark=spark) as t:
        t.sql(
            """
            CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12, 2));
            INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 5.5), (3, NULL, 1);
            CREATE VIEW paid AS SELECT * FROM orders WHERE amount > 0;
            CREATE STREAM TABLE per_customer AS SELECT customer, SUM(amount) AS total FROM paid GROUP BY customer;
            CREATE STREAM TABLE grand AS SELECT SUM(total) AS total FROM per_customer;
            """
        )
    return place


@pytest.fixture
def shop(bare: Cli, shop_template: Path) -> Cli:
    """The command on a copy of the template: a warehouse can be moved."""
    shutil.copytree(shop_template, bare.warehouse)
    return bare
