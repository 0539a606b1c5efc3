"""Which Java Spark will run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from trickle.engine.java import require_java
from trickle.errors import JavaMissing


def fake_java(home: Path, version: str, *, release: bool) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Debian"\nJAVA_VERSION="{version}"\n')
        # With the file there, the program must not be started.
        program.write_text("#!/bin/sh\nexit 1\n")
    return program


@pytest.mark.parametrize("release", [True, False])
def test_java_is_found_through_java_home_and_through_the_path(tmp_path: Path, release: bool) -> None:
    program = fake_java(tmp_path, "21.0.3", release=release)
    by_home = require_java({"JAVA_HOME": str(tmp_path)})
    by_path = require_java({"PATH": str(program.parent)})
    assert by_home == by_path
    assert (by_home.program, by_home.major) == (program, 21)


@pytest.mark.parametrize("version, major", [("11.0.2", 11), ("1.8.0_402", 8)])
def test_an_old_java_is_named(tmp_path: Path, version: str, major: int) -> None:
    fake_java(tmp_path, version, release=False)
    with pytest.raises(JavaMissing) as caught:
        require_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.detail == f"{tmp_path}/bin/java is Java {major}"


def test_java_home_wins_over_the_path_as_it_does_for_spark(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2", release=True)
    new = fake_java(tmp_path / "new", "17.0.1", release=True)
    with pytest.raises(JavaMissing):
        require_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)})


@pytest.mark.parametrize(
    "environment, detail",
    [
        ({}, "JAVA_HOME is not set, and there is no java on the PATH"),
        ({"PATH": "", "JAVA_HOME": ""}, "JAVA_HOME is not set, and there is no java on the PATH"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere, and there is no bin/java in it"),
    ],
)
def test_without_java_the_hint_tells_three_ways_to_get_it(environment: dict[str, str], detail: str) -> None:
    with pytest.raises(JavaMissing) as caught:
        require_java(environment)
    assert caught.value.detail == detail
    hint = caught.value.hint or ""
    assert "apt-get install openjdk-17-jre-headless" in hint
    assert "brew install openjdk@17" in hint
    assert "conda install -c conda-forge openjdk=17" in hint


def test_a_java_that_does_not_tell_its_version_is_refused(tmp_path: Path) -> None:
    fake_java(tmp_path, "", release=False).write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(JavaMissing, match="does not tell its version"):
        require_java({"JAVA_HOME": str(tmp_path)})
