"""``Flow.create``: what a producer emits when nobody takes it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from reactive_aio import Flow, hooks

Emit = Callable[[object], Awaitable[None]]


@pytest.mark.parametrize("how", ["take", "break", "cancel"])
async def test_an_element_emitted_in_the_cleanup_is_discarded(how: str) -> None:
    lost: list[object] = []
    over: list[str] = []

    async def rows(emit: Emit) -> None:
        try:
            for n in range(10):
                await emit(n)
        finally:
            await emit("footer")
            over.append("over")

    with hooks.using(on_discard=lost.append):
        flow = Flow.create(rows)
        if how == "take":
            assert await flow.take(2).to_list() == [0, 1]
        elif how == "break":
            async with flow.open() as items:
                await anext(items)
        else:
            begun = asyncio.Event()

            async def wait(_: object) -> None:
                begun.set()
                await asyncio.Event().wait()

            end = asyncio.create_task(flow.for_each(wait))
            await begun.wait()
            end.cancel()
            with pytest.raises(asyncio.CancelledError):
                await end

    assert over == ["over"]
    assert lost[-1] == "footer"


@pytest.mark.usefixtures("still")
async def test_what_other_tasks_emit_after_the_producer_has_returned_is_discarded() -> None:
    tasks: list[asyncio.Task[None]] = []
    lost: list[object] = []

    async def rows(emit: Emit) -> None:
        async def one(n: int) -> None:
            await emit(n)

        tasks.extend(asyncio.create_task(one(n)) for n in (1, 2, 3))
        await asyncio.sleep(0)

    with hooks.using(on_discard=lost.append):
        assert [n async for n in Flow.create(rows)] == [1]
        await asyncio.gather(*tasks)

    assert lost == [2, 3]


async def test_a_producer_that_swallows_its_cancel_does_not_keep_the_loop() -> None:
    emitted: list[int] = []

    async def rows(emit: Emit) -> None:
        for n in range(100):
            try:
                await emit(n)
            except asyncio.CancelledError:
                emitted.append(n)

    assert await Flow.create(rows).take(2).to_list() == [0, 1]
    assert emitted == [2]
