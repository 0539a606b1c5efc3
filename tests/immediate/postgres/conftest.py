"""A database of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.immediate.postgres.story import Story
from tests.postgres import Postgres

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text);
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(12, 2), placed date, note text);
    CREATE TABLE clicks (customer int, page text);
    INSERT INTO customers SELECT n, 'name ' || n, CASE WHEN n % 4 > 0 THEN 'r' || n % 4 END
                          FROM generate_series(1, 12) n;
    INSERT INTO orders SELECT n, nullif(n % 14, 0), CASE WHEN n % 9 > 0 THEN n % 23 + 0.25 END,
                              date '2024-01-01' + n % 20, 'note' FROM generate_series(1, 60) n;
    INSERT INTO clicks SELECT n % 6, 'p' || n % 3 FROM generate_series(1, 30) n;
"""


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
def story(url: str) -> Iterator[Story]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Story(connection)


@pytest.fixture
def shop(story: Story) -> Story:
    """Customers, their orders, and clicks, a table without a key in which rows are there several times."""
    story.connection.execute(SHOP)
    return story
