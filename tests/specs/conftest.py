"""The switch that writes golden files anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-specs", action="store_true", help="write the golden parts of tests/specs/*.spec anew")
