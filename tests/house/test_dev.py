"""The script that sets up a checkout: what it finds out about the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

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


def test_a_step_of_the_set_up_that_was_cut_off_is_done_again_and_one_that_was_done_is_not(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, ...]] = []

    def cut_off(*command: str) -> None:
        done.append(command)
        if len(done) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(dev, "step", cut_off)
    monkeypatch.setattr(dev, "uv", lambda: "uv")
    here = dev.Environment(machine, sys.executable, "3.11", spark=False)

    with pytest.raises(KeyboardInterrupt):
        dev.install(here, "packages", "one")
    for wanted in ("one", "one", "two", "two"):
        dev.install(here, "packages", wanted)

    assert ["one", "one", "two"] == [command[-1] for command in done]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The runs of the tests: the Python and the arguments of each. All Pythons are there."""
    found: list[tuple[str, list[str]]] = []

    def note(environment: Any, arguments: list[str]) -> int:
        found.append((environment.version, arguments))
        return 0

    monkeypatch.setattr(dev, "find_python", lambda version: f"python{version}")
    monkeypatch.setattr(
        dev, "default_environment", lambda: dev.Environment(Path(".venv"), "python", "3.11", spark=True)
    )
    monkeypatch.setattr(dev, "pytest", note)
    return found


def parts(ran: list[tuple[str, list[str]]]) -> list[tuple[str, str, bool]]:
    """Return each Python with its part of the tests, and whether it is the smoke tests only."""
    return [
        (version, next(each for each in arguments if each.startswith("--part")), dev.SMOKE[0] in arguments)
        for version, arguments in ran
    ]


def test_the_daily_tests_run_on_the_default_python_and_the_smoke_tests_on_the_others(
    ran: list[tuple[str, list[str]]],
) -> None:
    assert 0 == dev.main(["test"])

    brief = "--part=brief"
    assert [("3.11", "--part=daily", False), *((version, brief, True) for version in dev.TESTED[1:])] == parts(ran)


def test_all_runs_every_test_on_each_python(ran: list[tuple[str, list[str]]]) -> None:
    assert 0 == dev.main(["test", "--all"])

    assert [(version, "--part=all", False) for version in dev.TESTED] == parts(ran)


def test_ci_draws_from_the_rest_and_runs_some_cases_of_each_test_on_the_last_of_the_other_pythons(
    ran: list[tuple[str, list[str]]],
) -> None:
    assert 0 == dev.test_part("ci", [])

    first, *smoke, last = parts(ran)
    assert ("3.11", "--part=ci", False) == first
    assert [(version, "--part=brief", True) for version in dev.TESTED[1:-1]] == smoke
    assert (dev.TESTED[-1], "--part=brief", False) == last


def test_a_seed_is_handed_on_and_else_it_is_that_of_the_commit(
    ran: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "answer", lambda *_: "c0ffee")

    dev.main(["test", "--seed", "17"])
    dev.main(["test"])

    seeds = [[each for each in arguments if "seed" in each] for _, arguments in ran]
    pythons = len(dev.TESTED)
    assert [["--seed=17", "--hypothesis-seed=17"]] * pythons == seeds[:pythons]
    assert [["--seed=c0ffee", "--hypothesis-seed=c0ffee"]] * pythons == seeds[pythons:]


def test_what_is_handed_to_pytest_runs_on_one_python_with_nothing_left_out(ran: list[tuple[str, list[str]]]) -> None:
    dev.main(["test", "-k", "arbiter"])

    assert [("3.11", ["-k", "arbiter"])] == ran


def test_the_lowest_versions_are_those_that_the_package_declares_without_sparks() -> None:
    lowest = dev.lowest_versions()

    assert {"anyio", "attrs", "uvloop"} <= {each.partition("==")[0] for each in lowest}
    assert not any(each.startswith(("pyspark", "pandas", "pyarrow")) for each in lowest)
