"""Finds the Java that Spark will run on, without starting a JVM where a file can tell.

Spark takes ``JAVA_HOME`` when it is set and ``java`` on the ``PATH`` otherwise; so does this module.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trickle.errors import JavaMissing

MINIMUM = 17

_HINT = (
    "Debian and Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; "
    "conda: conda install -c conda-forge openjdk=17"
)


@dataclass(frozen=True)
class Java:
    """A Java program and its major version."""

    program: Path
    major: int


def require_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark will use; ``JavaMissing`` when there is none or it is too old."""
    environment = os.environ if environment is None else environment
    program = _program(environment)
    major = _major_from_release(program) or _major_from_program(program)
    if major is None:
        raise _missing(f"{program} does not tell its version")
    if major < MINIMUM:
        raise _missing(f"{program} is Java {major}")
    return Java(program, major)


def _missing(detail: str) -> JavaMissing:
    return JavaMissing(f"Spark needs Java {MINIMUM} or newer", detail=detail, hint=_HINT)


def _program(environment: Mapping[str, str]) -> Path:
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        if not os.access(program, os.X_OK):
            raise _missing(f"JAVA_HOME is {home}, and there is no bin/java in it")
        return program
    # An empty PATH must not fall back to the operating system's default path.
    found = shutil.which("java", path=environment.get("PATH") or os.devnull)
    if found is None:
        raise _missing("JAVA_HOME is not set, and there is no java on the PATH")
    return Path(found)


def parse_major(version: str) -> int | None:
    """The major version of a Java version string.

    >>> parse_major("17.0.15"), parse_major("1.8.0_402"), parse_major("21-ea")
    (17, 8, 21)
    """
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else None


def _major_from_release(program: Path) -> int | None:
    release = program.resolve().parent.parent / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return parse_major(found[1]) if found else None


def _major_from_program(program: Path) -> int | None:
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([^"]+)"', ran.stderr + ran.stdout)
    return parse_major(found[1]) if found else None
