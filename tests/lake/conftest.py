"""Fixtures of the lake's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lake.foreign import ForeignTable

MakeForeign = Callable[..., ForeignTable]


@pytest.fixture
def foreign(tmp_path: Path) -> MakeForeign:
    """Makes a table with a hand-written log."""

    def make(ddl: str = "id long", *, name: str = "t", **options: Any) -> ForeignTable:
        return ForeignTable(tmp_path / name, ddl, **options)

    return make
