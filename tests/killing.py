"""Processes that are killed for real, at a step, and use the Spark of the tests.

Everything that decides and commits is the Python process, which is killed; a JVM of its own would only take seconds to
start. ``killed`` is for the test, ``lent_session`` for the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PATIENCE = 100
"""Seconds that the process may take on a busy machine."""


def killed(module: str, spark: SparkSession, *arguments: str) -> None:
    """Run a module in a process of its own, which has to end by SIGKILL."""
    context = spark.sparkContext
    assert context._gateway is not None, "a session has a JVM"
    gateway = context._gateway.java_parameters
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        # The names by which PySpark itself finds a JVM that is there already.
        env={
            **os.environ,
            "PYSPARK_GATEWAY_PORT": str(gateway.port),
            "PYSPARK_GATEWAY_SECRET": gateway.auth_token,
        },
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def lent_session() -> SparkSession:
    """In such a process: a session of its own, with views and settings of its own, in the JVM of the tests."""
    gateway = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    jvm = gateway.jvm
    context = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    return SparkSession(SparkContext(gateway=gateway, jsc=context)).newSession()
