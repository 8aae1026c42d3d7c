"""The script that sets up a checkout: what it finds out about the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

dev = pytest.importorskip("dev", reason="an unpacked sdist has no dev.py")

JAVA = """\
#!/bin/sh
echo "    java.home = {home}
    java.specification.version = {version}" >&2
"""


def put_java(folder: Path, version: str, home: str) -> None:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(JAVA.format(home=home, version=version))
    java.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


posix = pytest.mark.skipif(sys.platform == "win32", reason="the Java of these tests is a shell script")


@posix
def test_java_is_where_it_says_itself_since_what_is_on_path_may_be_a_shim(machine: Path) -> None:
    put_java(machine / "path", "21", "/opt/java 21")

    assert Path("/opt/java 21") == dev.find_java()


@posix
def test_java_home_goes_before_path_unless_it_is_too_old(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_java(machine / "path", "17", "/opt/17")
    put_java(machine / "home" / "bin", "21", "/opt/21")
    put_java(machine / "old" / "bin", "1.8", "/opt/8")

    found = []
    for home in ("home", "old", "missing"):
        monkeypatch.setenv("JAVA_HOME", str(machine / home))
        found.append(dev.find_java())

    assert [Path("/opt/21"), Path("/opt/17"), Path("/opt/17")] == found


@posix
def test_without_a_java_that_is_new_enough_there_is_none(machine: Path) -> None:
    assert dev.find_java() is None
    put_java(machine / "path", "11", "/opt/11")
    assert dev.find_java() is None


@posix
def test_a_child_that_a_signal_has_ended_is_told_of_as_a_shell_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "prepare", lambda environment: dict(os.environ))
    here = dev.Environment(Path(sys.prefix), sys.executable, "3", spark=False)

    killed = dev.call(here, "timeit", "-n1", "-r1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")

    assert 137 == killed
