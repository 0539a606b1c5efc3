"""Where a Spark session comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from trickle.errors import InvalidOption

DEFAULT_MASTER = "local[*]"

_MASTERS = ("local", "local-cluster", "spark", "yarn", "k8s")
_REMOTE_PREFIX = "remote:"


@dataclass(frozen=True)
class Given:
    """A session of the caller's, classic or Spark Connect."""

    session: SparkSession
    config: Mapping[str, str]

    @property
    def kind(self) -> Literal["classic", "connect"]:
        return "connect" if type(self.session).__module__.startswith("pyspark.sql.connect") else "classic"


@dataclass(frozen=True)
class Master:
    """A classic session on a master; None for whatever this process runs already, or else ``local[*]``."""

    master: str | None
    config: Mapping[str, str]
    kind: Literal["classic"] = "classic"


@dataclass(frozen=True)
class Remote:
    """A Spark Connect session on a server (``sc://...``)."""

    address: str
    config: Mapping[str, str]
    kind: Literal["connect"] = "connect"


@dataclass(frozen=True)
class LocalRemote:
    """A Spark Connect session on a server that this process starts for itself on a local master."""

    master: str
    config: Mapping[str, str]
    kind: Literal["connect"] = "connect"


Place = Given | Master | Remote | LocalRemote


def place_of(spark: SparkSession | str | None, config: Mapping[str, str]) -> Place:
    """The place that the argument ``spark`` of ``connect`` means."""
    match spark:
        case None:
            return Master(None, config)
        case str() if spark.startswith("sc://"):
            return Remote(spark, config)
        case str() if spark.startswith(_REMOTE_PREFIX + "local"):
            return LocalRemote(spark.removeprefix(_REMOTE_PREFIX), config)
        case str() if spark.partition("[")[0].partition("://")[0] in _MASTERS:
            return Master(spark, config)
        case str():
            raise InvalidOption(
                f"no Spark session can be made from {spark!r}",
                hint="give a master (local[2], spark://host:7077), a Spark Connect address (sc://host:15002) "
                "or a SparkSession",
            )
        case session:
            return Given(session, config)
