"""Which session an engine uses, and when it stops.

PySpark knows one classic session per process, so engines that ask for one share it. A session that we made stops
with its last engine; a session of the caller's never does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from trickle.engine import launch
from trickle.engine.failures import translate
from trickle.engine.place import Given, LocalRemote, Master, Place, Remote
from trickle.errors import SparkUnavailable


@dataclass
class Held:
    """A session and the number of engines that use it."""

    session: SparkSession
    ours: bool
    users: int = 0


_lock = threading.RLock()
_local: Held | None = None
"""The classic session or local Spark Connect server that this process started."""


def acquire(place: Place) -> Held:
    """The session of a place; started when no other engine has it already."""
    with _lock:
        match place:
            case Given():
                held = _taken(place.session, place.config)
            case Master():
                held = _classic(place)
            case Remote():
                session = _start(lambda: launch.start_connect(place))
                configure(session, {**launch.NEEDED, **place.config})
                held = Held(session, ours=True)
            case LocalRemote():
                held = _owned(lambda: launch.start_local_connect(place))
            case _:
                assert_never(place)
        held.users += 1
        return held


def release(held: Held) -> None:
    """Give a session back; the last user of one that we made stops it."""
    global _local
    with _lock:
        held.users -= 1
        if not held.ours or held.users > 0:
            return
        if held is _local:
            _local = None
        # Stopping is the last thing done to it: a session that died before is stopped too.
        with suppress(Exception):
            held.session.stop()


def configure(session: SparkSession, config: Mapping[str, str]) -> None:
    """Set what the session lets us set; a server may forbid a key."""
    for key, value in config.items():
        with suppress(PySparkException):
            if session.conf.isModifiable(key) and session.conf.get(key, None) != value:
                session.conf.set(key, value)


def _taken(session: SparkSession, config: Mapping[str, str]) -> Held:
    launch.silence_loggers()
    configure(session, {**launch.NEEDED, **config})
    return Held(session, ours=False)


def _classic(place: Master) -> Held:
    # PySpark's own getOrCreate looks at this attribute too; there is no public way to ask.
    context = SparkContext._active_spark_context
    if context is None:
        return _owned(lambda: launch.start_classic(place))
    if place.master is not None and context.master != place.master:
        raise SparkUnavailable(
            f"this process runs Spark on {context.master} already",
            detail=f"asked for {place.master}, and a process has one classic session",
            hint="close the other connection first, or leave out the argument spark",
        )
    if _local is not None and _local.session.sparkContext is context:
        configure(_local.session, place.config)
        return _local
    return _taken(SparkSession.builder.getOrCreate(), place.config)


def _owned(start: Callable[[], SparkSession]) -> Held:
    global _local
    if _local is None or not _alive(_local.session):
        _local = Held(_start(start), ours=True)
    return _local


def _alive(session: SparkSession) -> bool:
    if type(session).__module__.startswith("pyspark.sql.connect"):
        stopped: bool = getattr(session, "is_stopped", False)
        return not stopped
    return SparkContext._active_spark_context is session.sparkContext


def _start(start: Callable[[], SparkSession]) -> SparkSession:
    try:
        return start()
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        translated = translate(error)
        told = (translated.detail or translated.message) if translated else f"{type(error).__name__}: {error}"
        raise SparkUnavailable(
            "the Spark session cannot be made", detail="\n".join(filter(None, [told, launch.jvm_log_tail()]))
        ) from None
