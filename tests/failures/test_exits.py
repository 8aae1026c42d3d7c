"""SystemExit and KeyboardInterrupt end the program that awaits the flow, when all has been cleaned up, and no loop on the way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.failures.code import AsyncResource, Code, Resource
from tests.failures.kinds import shown
from tests.failures.running import PATIENCE

LIMIT = 2 * PATIENCE


async def opened(code: Code) -> object:
    """Fail in the block of ``open()``."""
    async with Flow.from_async_iterable(numbers(code)).open() as items:
        async for _ in items:
            code.trip()
    return None


async def numbers(code: Code) -> Any:
    """Generate numbers, and clean up."""
    code.open += 1
    try:
        for n in range(9):
            yield n
    finally:
        await asyncio.sleep(0)
        code.open -= 1


def source(code: Code) -> Flow[Any]:
    """Return a source that is to be cleaned up."""
    return Flow.from_async_iterable(numbers(code))


async def endless(code: Code) -> Any:
    """Generate numbers until it is cancelled, and clean up: a cancel would cut short what is cleaned up already."""
    code.open += 1
    try:
        for n in count():
            yield n
    finally:
        await asyncio.sleep(0)
        code.open -= 1


WAYS: dict[str, Callable[[Code], Awaitable[object]]] = {
    "fused": lambda code: Flow.from_iterable(code.generator()).to_list(),
    "a function behind an async source": lambda code: source(code).map(code.calls()).to_list(),
    "an async source": lambda code: Flow.from_async_iterable(code.async_generator()).to_list(),
    "a thread": lambda code: source(code).publish_on(schedulers.thread("exits")).map(code.calls()).to_list(),
    "a source on a thread": lambda code: (
        Flow.from_async_iterable(code.async_generator()).subscribe_on(schedulers.thread("exits")).to_list()
    ),
    "threads": lambda code: (
        Flow.from_async_iterable(endless(code)).publish_on(schedulers.threads(2)).map(code.calls()).to_list()
    ),
    "map_async": lambda code: source(code).map_async(code.awaits(), max_concurrency=2).to_list(),
    "map_async on a thread": lambda code: (
        source(code).publish_on(schedulers.thread("exits")).map_async(code.awaits(), max_concurrency=2).to_list()
    ),
    "flat_map": lambda code: Flow.from_async_iterable(endless(code)).flat_map(code.calls()).to_list(),
    "do_finally": lambda code: source(code).do_finally(code.calls()).to_list(),
    "do_on_cancel": lambda code: source(code).do_on_cancel(code.calls()).take(1).to_list(),
    "using": lambda code: Flow.using(lambda: Resource(code, "exit"), lambda _: source(code)).to_list(),
    "using, async": lambda code: Flow.using(lambda: AsyncResource(code, "exit"), lambda _: source(code)).to_list(),
    "for_each": lambda code: source(code).for_each(code.calls()),
    "for_each async": lambda code: source(code).for_each(code.awaits()),
    "for_each async, two at a time": lambda code: source(code).for_each(code.awaits(), max_concurrency=2),
    "open": opened,
}


def expect(code: Code, raised: BaseException | None) -> None:
    """Fail, without a traceback of what may still run, unless the exit was raised and all has been cleaned up."""
    if raised is not code.error:
        pytest.fail(f"raised {shown(raised)}", pytrace=False)
    if code.open:
        pytest.fail("something is left open", pytrace=False)


def run_aside(run: Callable[[], object]) -> BaseException | None:
    """Return what something raises, run on a thread, where it may hang."""
    raised: list[BaseException | None] = []

    def work() -> None:
        try:
            run()
            raised.append(None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT)
    if not raised:
        pytest.fail("it hangs", pytrace=False)  # a traceback would have the interpreter parse while others compile
    return raised[0]


async def main(way: Callable[[Code], Awaitable[object]], code: Code) -> None:
    """Await the end in the main task."""
    try:
        await way(code)
    finally:
        assert not code.open, "what was open is not closed when the end raises"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_asyncio_run_raises_an_exit_when_all_has_been_cleaned_up(
    way: Callable[[Code], Awaitable[object]], kind: type[BaseException]
) -> None:
    code = Code(kind("raised"))

    raised = run_aside(lambda: asyncio.run(main(way, code)))

    expect(code, raised)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["fused", "an async source", "a thread", "do_finally"])
def test_run_sync_raises_an_exit_when_all_has_been_cleaned_up(name: str, kind: type[BaseException]) -> None:
    code = Code(kind("raised"))

    raised = run_aside(lambda: Flow.empty().run_sync(lambda _: WAYS[name](code)))

    expect(code, raised)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt], ids=lambda kind: kind.__name__)
def test_other_flows_on_the_thread_of_an_exit_go_on(kind: type[BaseException]) -> None:
    code, shared = Code(kind("raised")), schedulers.thread("shared")
    heard: list[object] = []

    async def both() -> None:
        async with Flow.range(9).publish_on(shared, prefetch=1).open() as items:
            heard.append(await anext(items))
            try:
                await Flow.range(3).publish_on(shared).map(code.calls()).to_list()
            except BaseException as error:
                heard.append(error)
            heard.extend([item async for item in items])

    raised = run_aside(lambda: asyncio.run(both()))

    if raised is not None or heard != [0, code.error, *range(1, 9)]:
        pytest.fail(f"{shown(raised)}; heard {shown(heard)}", pytrace=False)
