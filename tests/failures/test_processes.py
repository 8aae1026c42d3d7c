"""One case of each kind over processes: it arrives, nothing is left, and the flow can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from reactive_aio import Flow, RemoteError, SourceCancelledError, hooks, schedulers
from reactive_aio.schedulers.base import Workers
from reactive_aio.testing import no_leaks, settle
from tests.failures.kinds import ALL_KINDS, KINDS, shown
from tests.failures.running import PATIENCE

LIMIT = 3 * PATIENCE
BEYOND_PICKLING = {"unsettable", "frozen"}
"""Whose state can't be set in another process."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    with schedulers.processes(1) as workers:
        Flow.range(2).publish_on(workers).map(str).run_sync()
        yield workers


def raise_kind(name: str, item: Any) -> Any:
    raise KINDS[name]()  # noqa: RSE102 - it is a function that makes one


def raise_at_close(name: str, item: Any) -> Iterator[Any]:
    try:
        while True:
            yield item
    finally:
        raise KINDS[name]()  # noqa: RSE102 - it is a function that makes one


def raise_unpickling(name: str) -> Any:
    raise KINDS[name]()  # noqa: RSE102 - it is a function that makes one


class Unpicklable:
    """An element that can't be pickled, by whatever is raised then."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        raise KINDS[self.name]()  # noqa: RSE102 - as above


class NotUnpicklable(Unpicklable):
    """An element that can't be unpickled."""

    def __reduce__(self) -> Any:
        return raise_unpickling, (self.name,)


def arrived(name: str, error: BaseException | None) -> bool:
    """Return whether an error of the kind has arrived, or what stands for it."""
    made = KINDS[name]()
    if isinstance(made, asyncio.CancelledError):
        return isinstance(error, SourceCancelledError)
    if isinstance(made, (StopIteration, StopAsyncIteration)):
        return isinstance(error, (type(made), RuntimeError))
    return type(error) is type(made) or (name in BEYOND_PICKLING and isinstance(error, RemoteError))


async def outcome(flow: Flow[Any]) -> BaseException | None:
    """Return what the end raises, within the limit."""

    async def run() -> BaseException | None:
        try:
            await flow.to_list()
        except BaseException as error:
            return error
        return None

    task = asyncio.create_task(run())
    await asyncio.wait([task], timeout=LIMIT)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=LIMIT)
        pytest.fail("it hangs" if task.done() else "it hangs, and can't be cancelled", pytrace=False)
    return task.result()


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.name)
async def test_an_exception_of_a_function_in_a_process_arrives(kind: Any, pool: Workers) -> None:
    async with no_leaks():
        error = await outcome(Flow.range(3).publish_on(pool).map(partial(raise_kind, kind.name)))

    assert arrived(kind.name, error), shown(error)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.name)
async def test_an_exception_of_cleanup_in_a_process_arrives_or_goes_to_the_hook(kind: Any, pool: Workers) -> None:
    dropped: list[BaseException] = []
    flow = Flow.range(1).publish_on(pool).flat_map_iterable(partial(raise_at_close, kind.name)).take(1)
    with hooks.using(on_error_dropped=dropped.append):
        async with no_leaks():
            error = await outcome(flow)

    # Python itself swallows this one, where it comes out of a generator that is being closed.
    assert arrived(kind.name, error) or (error is None and kind.name == "GeneratorExit"), shown(error)
    assert [] == dropped


@pytest.mark.parametrize("way", [Unpicklable, NotUnpicklable], ids=["pickling", "unpickling"])
@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.name)
async def test_an_exception_of_an_element_on_its_way_there_ends_the_flow(kind: Any, way: Any, pool: Workers) -> None:
    async with no_leaks():
        error = await outcome(Flow.of(way(kind.name)).publish_on(pool).map(str))

    assert error is not None


async def test_a_flow_of_processes_can_be_cancelled_while_it_waits(pool: Workers) -> None:
    async with no_leaks():
        task = asyncio.ensure_future(Flow.of(1).concat(Flow.never()).publish_on(pool).map(str).to_list())
        await settle()
        task.cancel()
        await asyncio.wait([task], timeout=LIMIT)

    assert task.cancelled()
