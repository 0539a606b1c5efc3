from __future__ import annotations

import pytest

from trickle.catalog import urls
from trickle.errors import InvalidOption


@pytest.mark.parametrize(
    "given, driver, backend",
    [
        ("sqlite:////w/catalog.db", "sqlite+pysqlite", "sqlite"),
        ("postgresql://h/d", "postgresql+psycopg", "postgresql"),
        ("postgres://h/d", "postgresql+psycopg", "postgresql"),
        ("postgresql+psycopg://h/d", "postgresql+psycopg", "postgresql"),
    ],
)
def test_the_driver_is_filled_in(given: str, driver: str, backend: str) -> None:
    parsed = urls.parse(given)
    assert (parsed.drivername, urls.backend(parsed)) == (driver, backend)


@pytest.mark.parametrize(
    "bad",
    ["", "warehouse", "mysql://u:hunter2@h/d", "postgresql://u:hunter2@h:port/d", "sqlite://", "sqlite:///:memory:"],
)
def test_what_is_no_catalog_url_is_refused_without_repeating_a_password(bad: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        urls.parse(bad)
    assert "hunter2" not in str(caught.value)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db:5432/wh",
        "postgresql://ada@db:5432/wh?password=hunter2&sslpassword=hunter2",
        "postgresql://ada:hunter2@db:5432/wh?sslmode=require",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    shown = urls.shown(urls.parse(url))
    assert "hunter2" not in shown
    assert shown.startswith("postgresql://ada")
    assert "db:5432/wh" in shown
