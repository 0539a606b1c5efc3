"""The command on warehouses made for tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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


@pytest.fixture
def shop(cli: Cli, spark: SparkSession) -> Cli:
    """The command on a warehouse with a table, a view, and two stream tables of which one reads the other."""
    made = cli(
        "sql",
        """
        CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12, 2));
        INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 5.5), (3, NULL, 1);
        CREATE VIEW paid AS SELECT * FROM orders WHERE amount > 0;
        CREATE STREAM TABLE per_customer AS SELECT customer, SUM(amount) AS total FROM paid GROUP BY customer;
        CREATE STREAM TABLE grand AS SELECT SUM(total) AS total FROM per_customer;
        """,
    )
    assert made.code == 0, made.err
    return cli
