"""The command line: run a flow, or show its plan.

::

    reactive-aio run examples/flights.py:flow
    reactive-aio describe my_package.my_module:flow

Exit codes: 0 when the flow completed, 1 when it failed, 2 when there is no such flow, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TextIO

from .loading import AnyFlow, TargetError, build, load
from .running import Run, drive
from .screen import choose_screen
from .words import failure

TARGET = """\
a file or a module, a colon, and a flow in it, or a function without arguments (sync or async) that returns one:
examples/flights.py:flow, my_package.my_module:make_flow"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign is no reason to fail
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace, TextIO], int] = options.command
    try:
        return command(options, sys.stdout)
    except TargetError as error:
        print(failure(error, whole=True) if options.traceback else f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print("cancelled", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError as error:
        if _reader_has_gone(sys.stdout):
            return 141  # as a shell says it of SIGPIPE
        print(failure(error, whole=options.traceback), file=sys.stderr)  # noqa: T201
        return 1
    except Exception as error:  # whatever the user's code raises is shown to him
        print(failure(error, whole=options.traceback), file=sys.stderr)  # noqa: T201
        return 1


def _reader_has_gone(out: TextIO) -> bool:
    """Return whether the reader of the output has gone, as behind ``| head``. Then drop what is left."""
    try:
        out.write("\n")
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return True
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reactive-aio", description="Run flows of reactive_aio.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a flow and show what it emits")
    run.add_argument("--rows", type=int, default=20, metavar="N", help="rows to show of what was emitted (20)")
    run.add_argument("--tail", action="store_true", help="show the last rows instead of the first")
    run.set_defaults(command=_run)
    describe = commands.add_parser("describe", help="show the plan of a flow")
    describe.set_defaults(command=_describe)
    for command in (run, describe):
        command.add_argument("target", metavar="MODULE:ATTRIBUTE", help=TARGET)
        command.add_argument("--traceback", action="store_true", help="show the traceback of a failure")
    return parser


def _describe(options: argparse.Namespace, out: TextIO) -> int:
    candidate = load(options.target)
    with asyncio.Runner() as runner:
        print(build(options.target, candidate, runner.run).describe(), file=out)
    return 0


def _run(options: argparse.Namespace, out: TextIO) -> int:
    screen = choose_screen(out)
    run = Run(rows=max(0, options.rows), tail=options.tail)
    with asyncio.Runner() as runner:
        with screen.busy(f"building {options.target}"):
            flow: AnyFlow = build(options.target, load(options.target), runner.run)
        screen.text(flow.describe())
        try:
            with _ctrl_c_cancels():
                runner.run(drive(flow, run, screen))
        finally:
            screen.result(run)
    return 0


@contextmanager
def _ctrl_c_cancels() -> Generator[None]:
    """Let asyncio turn Ctrl-C into a cancel.

    It does so only where nobody, such as PySpark, handles it already.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
