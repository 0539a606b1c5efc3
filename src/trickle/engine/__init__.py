"""The Spark session: made or taken in one place, with its errors and its job counts."""

from trickle.engine.ddl import parse_ddl
from trickle.engine.failures import spark_errors
from trickle.engine.jobs import JobCount
from trickle.engine.session import Engine, Left

__all__ = ["Engine", "JobCount", "Left", "parse_ddl", "spark_errors"]
