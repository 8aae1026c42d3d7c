"""The clients of a resumable stream take its events themselves, and keep the promises of a flow."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from reactive_aio import Flow, SlowSubscriberError
from reactive_aio.testing import run_virtual
from reactive_aio.web import Event, EventStream, Resumable
from tests.web.client import Client


def stream_of(flow: Flow[int], *, lag: int = 256, evict_after: float | None = None) -> EventStream:
    resumable = Resumable(flow, lambda n: Event(str(n)), replay=10, lag=lag, evict_after=evict_after)
    return EventStream(resumable, heartbeat=None, send_timeout=None)


def test_the_last_client_that_leaves_waits_for_the_cleanup_of_the_stream() -> None:
    cleaned: list[float] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(7)
            cleaned.append(asyncio.get_running_loop().time())

    async def main() -> float:
        await Client(leaves_after=2).ask(stream_of(Flow.from_async_iterable(numbers)))
        return asyncio.get_running_loop().time()

    ended = run_virtual(main())
    assert [ended] == cleaned


def test_a_failure_of_the_stream_comes_behind_its_events() -> None:
    async def main() -> list[bytes]:
        client = Client()
        with pytest.raises(ValueError, match="broken"):
            await client.ask(stream_of(Flow.of(1, 2).concat(Flow[int].error(ValueError("broken")))))
        return client.chunks

    assert [b"data: 1", b"data: 2"] == [chunk.splitlines()[-2] for chunk in run_virtual(main())]


def test_no_more_is_made_than_the_slowest_client_allows() -> None:
    made: list[int] = []

    async def main() -> None:
        stalled = asyncio.create_task(
            Client(stalls_after=2).ask(stream_of(Flow.range(100).do_on_next(made.append), lag=4))
        )
        await asyncio.sleep(10)
        stalled.cancel()
        await asyncio.wait([stalled])

    run_virtual(main())
    assert 2 == len(made)


def test_a_client_that_holds_up_the_others_is_evicted() -> None:
    async def main() -> tuple[int, object]:
        stream = stream_of(Flow.range(20), lag=4, evict_after=5.0)
        released = asyncio.Event()

        class Stalled(Client):
            async def _send(self, message: dict[str, object]) -> None:
                if len(self.messages) == 2:
                    await released.wait()
                await super()._send(message)

        stalled, other = asyncio.create_task(Stalled().ask(stream)), Client()
        await other.ask(stream)
        assert 5.0 <= asyncio.get_running_loop().time() < 10.0
        released.set()
        (result,) = await asyncio.gather(stalled, return_exceptions=True)
        return len(other.chunks), result

    read, result = run_virtual(main())
    assert 20 == read
    assert isinstance(result, SlowSubscriberError)


def test_an_event_costs_a_client_less_than_60_calls() -> None:
    def calls(events: int) -> int:
        found = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal found
            found += event == "call"

        async def main() -> None:
            stream = stream_of(Flow.range(events).map_async(later, max_concurrency=1))
            await asyncio.gather(*(Client().ask(stream) for _ in range(20)))

        sys.setprofile(count)
        try:
            asyncio.run(main())
        finally:
            sys.setprofile(None)
        return found

    calls(10)
    cost = (calls(60) - calls(10)) / (50 * 20)
    assert cost < 60, cost


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n
