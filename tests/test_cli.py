"""The command line: what it loads, what it shows, and how it ends."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import attrs
import pytest

from reactive_aio import Flow, RegionSnapshot, Snapshot, schedulers
from reactive_aio._cli import main, screen, words
from reactive_aio._cli.running import Run, drive
from reactive_aio._cli.screen import PlainScreen, RichScreen, choose_screen
from reactive_aio._plan import TasksSnapshot

HEAD = "from reactive_aio import Flow, schedulers\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module with a name of its own, and give its path; what importing it changes is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    name = f"made_for_{re.sub(r'[^a-z0-9]', '_', tmp_path.name.lower())}"

    def write(text: str) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return str(path)

    return write


# -- what is loaded


@pytest.mark.parametrize(
    "text",
    [
        "flow = Flow.of(7, 8)",
        "def flow():\n    return Flow.of(7, 8)",
        "async def flow():\n    return Flow.of(7, 8)",
        "def flow(n=7):\n    return Flow.of(n, n + 1)",
        "def flow():\n    return Flow.of(*Flow.of(7, 8).run_sync())",
        "async def flow():\n    return Flow.of(*await Flow.of(7, 8).to_list())",
    ],
)
def test_the_target_is_a_flow_or_what_returns_one(
    module: Callable[[str], str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{module(text)}:flow"]) == 0

    assert "element\n-------\n      7\n      8\n" in capsys.readouterr().out


def test_the_attribute_may_be_one_of_an_object(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    target = module("class flows:\n    small = Flow.of(7)")

    assert main(["run", f"{target}:flows.small"]) == 0
    assert "7" in capsys.readouterr().out


def test_the_module_may_be_dotted_and_lie_in_the_current_folder(
    module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(module("flow = Flow.of(7)"))
    package = path.parent / f"{path.stem}_package"
    package.mkdir()
    path.rename(package / "inside.py")
    (package / "__init__.py").touch()
    monkeypatch.chdir(path.parent)

    assert main(["run", f"{package.name}.inside:flow"]) == 0
    assert "7" in capsys.readouterr().out


def test_modules_beside_the_file_can_be_imported_and_are_found_by_other_processes_too(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(module("import beside_the_file\nflow = Flow.of(beside_the_file.seven)"))
    (path.parent / "beside_the_file.py").write_text("seven = 7")

    assert main(["run", f"{path}:flow"]) == 0

    assert "7" in capsys.readouterr().out
    asked = [sys.executable, "-c", f"import {path.stem}"]
    assert subprocess.run(asked, check=False, cwd="/").returncode == 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{path}", "is not MODULE:ATTRIBUTE"),
        (":flow", "is not MODULE:ATTRIBUTE"),
        ("{path}:", "is not MODULE:ATTRIBUTE"),
        ("nowhere/at_all.py:flow", "there is no file 'nowhere/at_all.py'"),
        ("no_such_module:flow", "there is no module 'no_such_module'"),
        ("reactive_aio.nothing:flow", "there is no module 'reactive_aio.nothing'"),
        ("reactive_aio._flow.flow.nothing:flow", "there is no module 'reactive_aio._flow.flow.nothing'"),
        ("{path}:flwo", "has no attribute 'flwo'; did you mean 'flow'?"),
        ("{path}:xyz", "has no attribute 'xyz'; did you mean 'flow'?"),
        ("{path}:number", "a value of type int, but should be a flow"),
        ("{path}:Flow", "but should be a flow or a function"),
        ("{path}:needs", "is called without arguments, but missing a required argument: 'n'"),
        ("{path}:nothing", "returned None, but should return a flow"),
        ("{path}:later", "returned a value of type int, but should return a flow"),
    ],
)
def test_each_thing_that_is_wrong_with_a_target_is_said(
    module: Callable[[str], str], target: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = module(
        "flow = Flow.of(1)\nnumber = 3\ndef needs(n): return flow\ndef nothing(): pass\nasync def later(): return 3"
    )

    assert main(["run", target.format(path=path)]) == 2

    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.startswith("error: ")
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("def (", "SyntaxError"), ("import no_such", "no_such")],
)
def test_a_module_that_fails_to_import_is_said_with_its_line(
    module: Callable[[str], str], text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = module(text)

    assert main(["run", f"{path}:flow"]) == 2

    error = capsys.readouterr().err
    assert message in error
    assert f"{Path(path).name}:2)" in error


def test_a_file_with_the_name_of_another_module_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "json.py").write_text(HEAD)

    assert main(["run", f"{tmp_path / 'json.py'}:flow"]) == 2
    assert "Rename the file" in capsys.readouterr().err


def test_a_function_that_fails_to_build_the_flow_is_a_failure(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{module('def flow(): return Flow.of(1).take(-1)')}:flow"]) == 1
    assert "error: ValueError: take(n=-1)" in capsys.readouterr().err


# -- what is shown


def test_describe_shows_the_plan_and_runs_nothing(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = module("flow = Flow.range(3).map(lambda n: 1 // 0).publish_on(schedulers.thread('t'))")

    assert main(["describe", f"{path}:flow"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("R1  the subscriber's loop   range(0, 3) -> map(<lambda>)")
    assert shown[2].startswith("R2  thread('t')")


@pytest.mark.usefixtures("still")
def test_without_a_terminal_come_the_plan_then_progress_then_the_table(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = module("flow = Flow.range(1000).publish_on(schedulers.thread('t')).filter(lambda n: n < 2)")

    assert main(["run", f"{path}:flow"]) == 0

    out = capsys.readouterr().out
    assert re.match(
        r"R1  .*\n \|  boundary, prefetch 256\nR2  thread\('t'\).*\n\n"
        r" +\d+\.\d s  R1 1,000 -> R2 2  \([\d,]+/s\)\n\n"
        r"element\n-------\n      0\n      1\n\n"
        r"2 elements in \d+\.\d\d s \([\d,]+/s\)\n$",
        out,
    )


@pytest.mark.parametrize(
    ("options", "first", "cut"), [([], "0", "(7 more not shown)"), (["--tail"], "7", "(7 before not shown)")]
)
def test_a_long_result_is_cut_and_it_is_said_how_much(
    module: Callable[[str], str], options: list[str], first: str, cut: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{module('flow = Flow.range(10)')}:flow", "--rows", "3", *options]) == 0

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    at = lines.index("-------")
    assert lines[at + 1] == first
    assert lines[at + 4] == cut


async def test_the_rows_that_will_not_be_shown_are_not_kept() -> None:
    for tail in (False, True):
        run = Run(rows=2, tail=tail)
        for n in range(1000):
            run.add(n)

        assert (list(run.shown), run.emitted, run.cut) == ([998, 999] if tail else [0, 1], 1000, 998)


@attrs.frozen
class Bear:
    name: str
    weight: float


class Named(NamedTuple):
    name: str
    weight: float


@pytest.mark.parametrize("row", [Bear("Pu", 2.5), {"name": "Pu", "weight": 2.5}, Named("Pu", 2.5)])
def test_fields_and_keys_are_columns(row: object) -> None:
    assert words.table([row]).splitlines() == ["name  weight", "----  ------", "Pu       2.5"]


def test_rows_of_different_shapes_share_a_table() -> None:
    assert words.table([{"a": 1}, {"b": None}, ("x",), "long " * 50]).splitlines() == [
        "a  b  0  element",
        "-  -  -  " + "-" * 60,
        "1",
        "",
        "      x",
        "         " + ("long " * 50)[:57] + "...",
    ]


# -- failures


def test_a_failure_is_shown_with_its_notes_and_without_a_traceback(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = module("flow = Flow.range(5).map(lambda n: (3, 6)[n])")

    assert main(["run", f"{path}:flow"]) == 1

    shown = capsys.readouterr()
    assert "element\n-------\n      3\n      6\n" in shown.out
    first, note, hint = shown.err.splitlines()
    assert first == "error: IndexError: tuple index out of range"
    assert note.startswith("    in map(<lambda>), chained at ")
    assert hint == "(--traceback shows all)"


def test_what_a_failure_came_from_is_shown(capsys: pytest.CaptureFixture[str], module: Callable[[str], str]) -> None:
    path = module("flow = Flow.error(OSError('down')).on_error_resume_next(Flow.error(ValueError('too')))")

    assert main(["run", f"{path}:flow"]) == 1
    assert "error: ValueError: too\n" in (err := capsys.readouterr().err)
    assert "after: OSError: down\n" in err


def test_a_group_of_failures_is_shown_with_its_members() -> None:
    shown = words.failure(ExceptionGroup("two", [OSError("a"), ValueError("b")]), whole=False)

    assert shown.splitlines()[1:3] == ["    OSError: a", "    ValueError: b"]


def test_a_failure_is_shown_whatever_its_class_does() -> None:
    class FalseError(Exception):
        def __bool__(self) -> bool:
            return False

    class MuteError(Exception):
        def __str__(self) -> str:
            raise GeneratorExit

    error, cause = MuteError(), FalseError("cause")
    error.__cause__, error.__context__ = cause, ValueError("context")

    assert ["error: MuteError", "after: FalseError: cause"] == words.failure(error, whole=False).splitlines()[:2]


def test_the_traceback_is_shown_where_it_is_asked_for(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{module('flow = Flow.error(OSError(3))')}:flow", "--traceback"]) == 1
    assert capsys.readouterr().err.startswith("Traceback (most recent call last)")


ENDLESS = """
import time
def numbers():
    try:
        while True:
            time.sleep(0.001)
            yield 1
    finally:
        print("closed", flush=True)
def ready(n):
    if not said:
        said.append(n)
        print("ready", flush=True)
    return n
said = []
flow = Flow.from_iterable(numbers()).publish_on(schedulers.thread("t")).map(ready)
"""


# The signal handlers that PySpark sets when its context is made.
HANDLED = """
import signal, sys
def handle(number, frame):
    print("raised", file=sys.stderr)
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handle)
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("before", ["", HANDLED], ids=["plain", "handled"])
def test_ctrl_c_cancels_cleans_up_and_shows_what_there_is(module: Callable[[str], str], before: str) -> None:
    command = [sys.executable, "-m", "reactive_aio", "run", f"{module(before + ENDLESS)}:flow", "--rows", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while running.stdout.readline() != "ready\n":
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        try:
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()

    assert running.returncode == 130
    assert err == "cancelled\n"
    assert "closed\n" in out
    assert re.search(r"\d+ elements? in \d", out)


# -- screens


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched() -> Flow[int]:
    return Flow.range(50_000).publish_on(schedulers.thread("t")).filter(lambda n: n % 25_000 == 0)


async def test_a_terminal_with_rich_shows_a_bar_and_a_drawn_table() -> None:
    out = Terminal()
    chosen = choose_screen(out)
    run = Run(rows=1)
    assert isinstance(chosen, RichScreen)
    chosen.console.width = 120

    with chosen.busy("building"):
        chosen.text("[plan]")
    await drive(watched(), run, chosen)
    chosen.result(run)

    shown = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", out.getvalue())
    assert "[plan]" in shown
    assert "R1 50,000 -> R2 2" in shown
    assert "┃ element ┃" in shown
    assert "(1 more not shown)" in shown


def test_each_job_of_a_cluster_has_a_bar_with_its_tasks_its_elements_and_its_rate() -> None:
    chosen = choose_screen(Terminal())
    assert isinstance(chosen, RichScreen)
    chosen.console.width = 120
    left = RegionSnapshot("Spark left", 2_000, tasks=TasksSnapshot(total=8, running=2, done=3))
    right = RegionSnapshot("Spark right", 50, tasks=TasksSnapshot(total=4, running=1, done=4))
    run = Run(rows=1)
    run.seconds = 0.5
    run.snapshot = Snapshot((left, right, RegionSnapshot("current()", 10)))

    with chosen.watching() as tell:
        tell(run)
        tell(run)

    shown = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", chosen.console.file.getvalue())  # type: ignore[attr-defined]
    last = shown.split("\r")[-1]
    assert "Spark left: 3/8 tasks, 2 running, 2,000 elements (4,000/s)" in last
    assert re.search("━{20} Spark right: 4/4 tasks", last)


async def test_a_terminal_without_rich_shows_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(screen, "find_spec", nothing)
    out = Terminal()
    chosen = choose_screen(out)
    run = Run(rows=1)
    assert isinstance(chosen, PlainScreen)

    await drive(watched(), run, chosen)
    chosen.result(run)

    line = out.getvalue().split("\r\x1b[K")[-1]
    assert re.match(r" +\d+\.\d s  R1 50,000 -> R2 2  \([\d,]+/s\)\n\nelement\n", line)


async def test_progress_is_reported_while_the_flow_runs() -> None:
    """The source ends only when it has been told of its elements, so nothing here depends on time."""
    told = asyncio.Event()

    async def two_then_wait(emit: Callable[[int], Awaitable[None]]) -> None:
        await emit(1)
        await emit(2)
        await told.wait()

    class Watcher:
        @contextmanager
        def watching(self) -> Generator[Callable[[Run], None]]:
            yield self.tell

        def tell(self, run: Run) -> None:
            if [region.delivered for region in run.snapshot.regions] == [2, 2]:
                told.set()

    flow: Flow[int] = Flow.create(two_then_wait)
    async with asyncio.timeout(60):
        await drive(flow.publish_on(schedulers.thread("t")).map(str), Run(rows=1), Watcher())


def test_a_reader_that_has_gone_ends_it_without_a_word(module: Callable[[str], str]) -> None:
    path = module("flow = Flow.range(3)\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "reactive_aio", "run", f"{path}:flow"]
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False, timeout=60)

    assert (141, "") == (done.returncode, done.stderr)


def test_a_pipe_of_the_flow_that_breaks_is_a_failure_like_others(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = module("flow = Flow.error(BrokenPipeError('the far side has gone'))\n")

    assert 1 == main(["run", f"{path}:flow"])
    assert "error: BrokenPipeError: the far side has gone" in capsys.readouterr().err
