"""The system views of gates, scheduler, sources and publications: the rows of the methods of the same name."""

from __future__ import annotations

from collections.abc import Mapping

from trickle.publish import listing as publications
from trickle.refresh import fuse, loads, usergates
from trickle.replicas import listing
from trickle.scheduler import control, graph
from trickle.tables.system import View

VIEWS: Mapping[str, View] = {
    "bootstrap_gate_status": (loads.BootstrapRow, loads.bootstrap_gate_status),
    "cdc_status": (listing.CdcStatusRow, listing.cdc_status),
    "dependency_tree": (graph.TreeRow, graph.dependency_tree),
    "diamond_groups": (graph.DiamondRow, graph.diamond_groups),
    "fuse_status": (fuse.FuseStatusRow, fuse.fuse_status),
    "gates": (usergates.UserGateRow, usergates.listed),
    "jobs": (control.JobRow, control.parallel_job_status),
    "list_publications": (publications.PublicationRow, publications.list_publications),
    "list_sources": (listing.SourceRow, listing.list_sources),
    "refresh_groups": (control.RefreshGroupRow, control.refresh_groups),
    "scc_status": (graph.ComponentRow, graph.scc_status),
    "scheduler_status": (control.SchedulerRow, lambda warehouse: [control.scheduler_status(warehouse)]),
    "source_gates": (loads.SourceGateRow, loads.listed_gates),
    "watermark_groups": (loads.WatermarkGroupRow, loads.listed_groups),
    "watermark_status": (loads.WatermarkStatusRow, loads.watermark_status),
    "watermarks": (loads.WatermarkRow, loads.listed_watermarks),
    "worker_pool_status": (control.WorkerPoolRow, lambda warehouse: [control.worker_pool_status(warehouse)]),
}
