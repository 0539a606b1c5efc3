"""IMMEDIATE stream tables inside PostgreSQL: delta plans as triggers, in the transaction that changes a source.

installed = install(connection, "totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
drop(connection, "totals")
"""

from trickle.immediate.postgres.install import Installed, describe, drop, install, installed, rebuild

__all__ = ["Installed", "describe", "drop", "install", "installed", "rebuild"]
