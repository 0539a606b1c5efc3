"""What the options before and after a command's name say: which warehouse, and how to print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trickle.api import Trickle

DEFAULT_WAREHOUSE = "warehouse"


@dataclass(frozen=True)
class Session:
    """One run of the command."""

    warehouse: str = DEFAULT_WAREHOUSE
    catalog: str | None = None
    spark: str | None = None
    as_json: bool = False

    def overridden(self, warehouse: str | None, catalog: str | None, spark: str | None, as_json: bool) -> Session:
        """The same with what was given after the command's name."""
        return replace(
            self,
            warehouse=warehouse or self.warehouse,
            catalog=catalog or self.catalog,
            spark=spark or self.spark,
            as_json=as_json or self.as_json,
        )

    @contextmanager
    def connect(self, *, create: bool = False) -> Iterator[Trickle]:
        """The warehouse, for the time of the block."""
        from trickle.api import connect

        with connect(self.warehouse, catalog=self.catalog, spark=self.spark, create=create) as opened:
            yield opened
