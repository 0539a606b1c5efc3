"""Starts Spark: settings fit for small jobs, and nothing printed on the terminal."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from trickle.engine.java import require_java
from trickle.engine.place import DEFAULT_MASTER, LocalRemote, Master, Remote
from trickle.errors import SparkUnavailable

NEEDED: Mapping[str, str] = {
    # A value that does not fit into its column is an error, and not NULL.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # How strings lie in what is handed over (handing.py).
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Above this number of paths Spark starts a listing job before it reads the first file.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""What every session must have for results to be right and quick; set on a given session too."""

MEMORY_VARIABLE = "TRICKLE_DRIVER_MEMORY"
"""Environment variable with the memory of a local Spark, such as ``4g``."""

_CONNECT_PORT = 15002
_REACH_SECONDS = 10.0
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def start_classic(place: Master) -> SparkSession:
    """A new classic session."""
    require_java()
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list({**settings(place.master or DEFAULT_MASTER), **place.config}.items()))
    _start_jvm(conf)
    session = SparkSession(SparkContext(conf=conf))
    silence_loggers()
    return session


def start_connect(place: Remote) -> SparkSession:
    """A new session on a Spark Connect server."""
    _reach(place.address)
    session = SparkSession.builder.remote(place.address).create()
    silence_loggers()
    return session


def start_local_connect(place: LocalRemote) -> SparkSession:
    """A Spark Connect session on a server in this process."""
    require_java()
    config: dict[str, bool | float | int | str | None] = {**settings(place.master), **place.config}
    _start_jvm(SparkConf(loadDefaults=False).setAll([(k, str(v)) for k, v in config.items()]))
    del config["spark.master"]
    builder = SparkSession.builder.remote(place.master).config(map=config)
    with warnings.catch_warnings():
        # PySpark sets the server's own settings a second time through the client, which may not set them.
        warnings.filterwarnings("ignore", message="Failed to set")
        session = builder.getOrCreate()
    silence_loggers()
    return session


def settings(master: str) -> dict[str, str]:
    """The settings of a session that we start."""
    values = {
        "spark.app.name": "trickle",
        "spark.master": master,
        # Units that are refreshed side by side share the cores instead of queueing (scheduler/pools.py).
        "spark.scheduler.mode": "FAIR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_settings()}",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Plans of the same stream tables come again and again: of a hundred, the usual number, most were compiled anew.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **NEEDED,
    }
    if master.startswith("local"):
        values |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": os.environ.get(MEMORY_VARIABLE) or _memory(),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": str(max(2, min(os.cpu_count() or 2, 8))),
            "spark.sql.warehouse.dir": (_scratch() / "warehouse").as_uri(),
        }
    return values


def silence_loggers() -> None:
    """PySpark logs every error of a query, JVM stack included, to stderr: the exception says it already."""
    for name in _NOISY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


def jvm_log_tail(lines: int = 5) -> str:
    """The last lines that the JVM printed."""
    if not _jvm_log().exists():
        return ""
    return "\n".join(_jvm_log().read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _start_jvm(conf: SparkConf) -> None:
    """Start the JVM with its output in a file: parts of it (``Using incubator modules``) cannot be turned off."""
    if conf.get("spark.master", "").startswith("local"):
        # The user's own functions run in the Python that has the packages they were written with.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A stopped session leaves its JVM behind, and PySpark uses that one again.
    if SparkContext._gateway is None:
        with _jvm_log().open("ab") as log:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
        SparkContext._ensure_initialized(gateway=gateway)


def _log_settings() -> str:
    return Path(__file__).with_name("log4j2.properties").as_uri()


def _memory() -> str:
    """A quarter of the machine, within 1 and 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1, min(8, total // 4 // 2**30))}g"


@cache
def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="trickle-spark-", ignore_cleanup_errors=True)


def _scratch() -> Path:
    return Path(_scratch_folder().name)


def _jvm_log() -> Path:
    return _scratch() / "jvm.log"


def _reach(address: str) -> None:
    """Fail at once when nothing listens: the client itself would try for ten minutes."""
    parts = urlsplit(address)
    host, port = parts.hostname or "localhost", parts.port or _CONNECT_PORT
    try:
        socket.create_connection((host, port), timeout=_REACH_SECONDS).close()
    except OSError as error:
        raise SparkUnavailable(
            f"no Spark Connect server answers at {host}:{port}",
            detail=error.strerror or str(error),
            hint="start it with start-connect-server.sh, or correct the address",
        ) from None
