"""The part of the public interface that keeps stream tables fresh by themselves."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime

from trickle.refresh.outcome import RefreshResult
from trickle.scheduler import control, graph, loop, why
from trickle.scheduler.control import JobRow, RefreshGroupRow, SchedulerRow, WorkerPoolRow
from trickle.scheduler.graph import ComponentRow, DiamondRow, TreeRow
from trickle.scheduler.run import tick
from trickle.sql import names
from trickle.warehouse import Warehouse

PROCEDURES = (
    "create_refresh_group",
    "dependency_tree",
    "diamond_groups",
    "drain",
    "drop_refresh_group",
    "explain_dag",
    "parallel_job_status",
    "pause_all",
    "refresh_groups",
    "resume_all",
    "scc_status",
    "scheduler_status",
    "tick",
    "why_not_refreshed",
    "worker_pool_status",
)


class Scheduling:
    """Ticks, the daemon, groups, and how they stand."""

    warehouse: Warehouse

    def tick(self, now: datetime | None = None) -> list[RefreshResult]:
        """One tick of the scheduler: refresh what is due, in order. ``now`` stands for the current time."""
        return tick(self.warehouse, now)

    def run(self, stop: threading.Event | None = None) -> None:
        """Be the scheduler, until stopped: by the event, SIGTERM or Ctrl-C."""
        loop.run(self.warehouse, stop)

    def why_not_refreshed(self, name: str) -> list[str]:
        """What every gate says of a stream table now, in words, line by line."""
        return why.why_not_refreshed(self.warehouse, names.table_name(name))

    def pause_all(self, *, reason: str | None = None, by: str | None = None) -> SchedulerRow:
        """Begin no scheduled refresh until ``resume_all``."""
        return control.pause_all(self.warehouse, reason, by)

    def resume_all(self) -> SchedulerRow:
        """Go on after ``pause_all`` or ``drain``."""
        return control.resume_all(self.warehouse)

    def drain(self, *, timeout: float | None = None, by: str | None = None) -> SchedulerRow:
        """End what has begun, begin nothing more, and wait for that."""
        return control.drain(self.warehouse, timeout, by)

    def scheduler_status(self) -> SchedulerRow:
        """Who keeps the warehouse, and what it was told."""
        return control.scheduler_status(self.warehouse)

    def worker_pool_status(self) -> WorkerPoolRow:
        """How many units may run side by side, and how many do."""
        return control.worker_pool_status(self.warehouse)

    def parallel_job_status(self, *, limit: int = 100) -> list[JobRow]:
        """The last units that were handed to workers."""
        return control.parallel_job_status(self.warehouse, limit)

    def create_refresh_group(
        self, name: str, members: Sequence[str] | str, *, isolation: str = "READ_COMMITTED"
    ) -> RefreshGroupRow:
        """Stream tables that are refreshed and committed together."""
        return control.create_refresh_group(self.warehouse, name, members, isolation)

    def drop_refresh_group(self, name: str) -> None:
        """They are refreshed on their own again."""
        control.drop_refresh_group(self.warehouse, name)

    def refresh_groups(self) -> list[RefreshGroupRow]:
        """All declared groups."""
        return control.refresh_groups(self.warehouse)

    def diamond_groups(self) -> list[DiamondRow]:
        """Stream tables that several ways lead to, and who is refreshed together with them."""
        return graph.diamond_groups(self.warehouse)

    def scc_status(self) -> list[ComponentRow]:
        """Stream tables that read each other."""
        return graph.scc_status(self.warehouse)

    def dependency_tree(self, name: str | None = None) -> list[TreeRow]:
        """What a stream table, or each that nobody reads, is computed from."""
        return graph.dependency_tree(self.warehouse, None if name is None else names.table_name(name))

    def explain_dag(self, format: str = "mermaid") -> str:
        """The graph of all stream tables, as ``mermaid`` or ``dot``."""
        return graph.explain_dag(self.warehouse, format)
