"""Runs a program, and gives its trace: what has happened, in order, line by line."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final

from reactive_aio import hooks
from tests.traces.ends import READS
from tests.traces.programs import Program
from tests.traces.run import Run
from tests.traces.steps import chain
from tests.traces.tape import OUTSIDE, EndlessError, Tape, TurnLoop, show, still, told

AT_MOST: Final = 30.0
"""Virtual seconds after which a program is cancelled that has not ended: it may wait for ever."""


@contextmanager
def studio() -> Generator[None]:
    """Have all stand still that would make two traces of a program differ."""
    collecting, hook = gc.isenabled(), sys.unraisablehook
    gc.collect()
    gc.freeze()
    gc.disable()
    with still(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
            gc.collect()
        finally:
            sys.unraisablehook = hook
            gc.unfreeze()
            if collecting:
                gc.enable()


def record(program: Program, *, bounded: bool) -> list[str]:
    """Run a program; in a `studio`."""
    loop = TurnLoop()
    tape = Tape(loop)
    run = Run(program, tape, bounded)
    loop.set_exception_handler(tape.handle)
    sys.unraisablehook = tape.unraisable
    main = loop.create_task(_main(run, loop), context=Context())
    try:
        loop.run_until_complete(main)
    except EndlessError:
        tape.say("has no end")
    finally:
        tape.open = False
        _clear(loop)
    return tape.lines


async def _main(run: Run, loop: TurnLoop) -> None:
    end = loop.create_task(_end(run))
    if run.program.cancel_at is not None:
        loop.at_turn[loop.turn + run.program.cancel_at] = lambda: _cancel(run, end)
    last = loop.call_later(AT_MOST, lambda: _cancel(run, end))
    await asyncio.wait([end])
    last.cancel()
    await loop.rest()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    run.say(f"at rest at {loop.time():.3f}; {len(left)} tasks are left")


def _cancel(run: Run, end: asyncio.Task[None]) -> None:
    run.say(f"the end is cancelled{' in vain' * (not end.cancel())}")


async def _end(run: Run) -> None:
    """Read the flow of a program, and tell of the end."""

    def dropped(error: BaseException) -> None:
        run.say(f"hook dropped {told(error)}")
        if run.program.hook_fails:
            run.fail("hook")

    def discarded(item: Any) -> None:
        run.say(f"hook discarded {show(item)}")
        if run.program.hook_fails:
            run.fail("hook")

    OUTSIDE.set("end")
    program = run.program
    try:
        with hooks.using(on_error_dropped=dropped, on_discard=discarded):
            run.say(f"ends with {show(await READS[program.end.name](run, chain(run, program.chain), program.end))}")
    except BaseException as error:
        run.say(f"ends by {told(error)}")


def _clear(loop: TurnLoop) -> None:
    """Let nothing of a program reach into the next one."""
    loop.turn = 0
    try:
        for _ in range(3):
            tasks = asyncio.all_tasks(loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.wait(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
    except (EndlessError, RuntimeError):
        pass  # what goes on for ever is left to itself
    finally:
        loop.close()
