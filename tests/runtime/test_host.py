"""Hosts: who hears of what a cleanup raises, when the end may be told that all has ended, and who comes and goes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar, copy_context
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio import Flow, hooks, schedulers
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio.extend import Audience, SharedHost
from tests.subscribers import idle

# -- the host of a flow that is read by a combinator


@define(eq=False)
class Reading:
    """Stands for the region that reads a flow: hears of events when the test lets it."""

    posted: list[tuple[Callable[[Any], None], Any]] = field(factory=list)
    heard: list[BaseException] = field(factory=list)

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        self.posted.append((handle, value))

    def inner_cleanup_failed(self, error: BaseException) -> None:
        self.heard.append(error)


def test_nothing_has_ended_before_the_region_that_reads_has_heard_of_a_cleanup() -> None:
    reader: Any = Reading()
    lifetime, ended, failure = Lifetime(), list[str](), OSError("in the cleanup")
    release = lifetime.hold()
    lifetime.then(lambda: ended.append("ended"))
    inner = FlowHost(lifetime, FlowHost(lifetime, reader=reader))

    inner.cleanup_failed(failure)
    release()
    assert ([], []) == (reader.heard, ended)

    ((handle, value),) = reader.posted
    handle(value)
    assert ([failure], ["ended"]) == (reader.heard, ended)


# -- a host with several receivers, by the invariants that it keeps

FAILURE = OSError("of the run")
place: ContextVar[str] = ContextVar("place", default="nowhere")


@define(eq=False)
class Ear:
    """One who listens, and does something when it hears of the end."""

    heard: list[Any] = field(factory=list)
    at_end: Callable[[], None] = lambda: None

    def end(self, error: BaseException | None) -> None:
        self.heard.append(error or "end")
        self.at_end()


@define(eq=False)
class Loudspeaker(SharedHost[Ear]):
    """Passes all elements to all subscribers."""

    def on_chunk(self, items: list[Any]) -> None:
        for ear in self.audience.members:
            ear.heard += items


@define(eq=False)
class Source:
    """A flow that goes on until it is left, and tells where it runs."""

    tasks: list[asyncio.Task[Any] | None] = field(factory=list)
    places: list[str] = field(factory=list)
    closing: list[str] = field(factory=list)
    may_end: asyncio.Event = field(factory=asyncio.Event)

    def flow(self) -> Flow[int]:
        return Flow.from_async_iterable(self.numbers())

    async def numbers(self) -> AsyncIterator[int]:
        try:
            for n in range(9):
                self.tasks.append(asyncio.current_task())
                self.places.append(place.get())
                yield n
        finally:
            self.closing.append("begun")
            await self.may_end.wait()
            self.closing.append("done")


async def test_a_host_ends_behind_all_that_it_holds() -> None:
    source, ended, ear = Source(), list[str](), Ear()
    host = Loudspeaker(source.flow(), ended=lambda: ended.append("ended"))
    host.join(ear)
    host.request(1)
    await idle()
    host.leave(ear)
    await idle()
    assert (["begun"], []) == (source.closing, ended)

    source.may_end.set()
    await idle()
    assert (["begun", "done"], ["ended"]) == (source.closing, ended)


@pytest.mark.parametrize("leaves", [False, True])
async def test_the_failure_of_a_run_that_nobody_listens_to_goes_to_the_hook_once(leaves: bool) -> None:
    dropped, ear = list[BaseException](), Ear()

    def fail() -> None:
        raise FAILURE

    with hooks.using(on_error_dropped=dropped.append):
        host = Loudspeaker(Flow.never().do_on_cancel(fail) if leaves else Flow.error(FAILURE))
    if leaves:
        host.join(ear)
        await idle()
        host.leave(ear)
    else:
        host.begin()
    await idle()

    assert ([FAILURE], []) == (dropped, ear.heard)
    assert host.over


async def test_a_failure_that_somebody_hears_does_not_go_to_the_hook() -> None:
    dropped, ears = list[BaseException](), [Ear(), Ear()]
    with hooks.using(on_error_dropped=dropped.append):
        host = Loudspeaker(Flow.error(FAILURE))
    for ear in ears:
        host.join(ear)
    await idle()

    assert ([], [[FAILURE], [FAILURE]]) == (dropped, [ear.heard for ear in ears])


async def test_a_host_inherits_neither_the_task_nor_the_context_of_who_comes_first() -> None:
    source, ear = Source(), Ear()
    context = copy_context()
    context.run(place.set, "the host")
    host = Loudspeaker(source.flow(), context=context)

    async def come() -> None:
        place.set("who comes first")
        host.join(Ear())
        host.request(2)
        await asyncio.Event().wait()

    first = asyncio.ensure_future(come())
    await idle()
    host.join(ear)
    first.cancel()
    await asyncio.wait([first])
    host.request(2)
    await idle()

    assert [2, 3] == ear.heard
    assert first not in source.tasks
    assert {"the host"} == set(source.places)
    source.may_end.set()
    for each in tuple(host.audience.members):
        host.leave(each)
    await idle()


async def test_that_the_last_listener_leaves_is_one_event() -> None:
    cancelled, ears = list[str](), [Ear(), Ear()]
    host = Loudspeaker(Flow.never().do_on_cancel(lambda: cancelled.append("cancel")))
    for ear in ears:
        host.join(ear)
    await idle()
    host.leave(ears[0])
    host.leave(ears[0])
    await idle()
    assert ([], False) == (cancelled, host.over)

    host.leave(ears[1])
    host.leave(ears[1])
    await idle()
    assert (["cancel"], True) == (cancelled, host.over)


async def test_a_run_that_ends_elsewhere_is_heard_where_it_has_begun() -> None:
    ear, loops = Ear(), list[asyncio.AbstractEventLoop]()
    ended = asyncio.Event()
    ear.at_end = lambda: (loops.append(asyncio.get_running_loop()), ended.set())[0]
    host = Loudspeaker(Flow.range(2).publish_on(schedulers.thread("of the run")))
    host.join(ear)
    host.request(9)
    await ended.wait()

    assert [0, 1, "end"] == ear.heard
    assert [asyncio.get_running_loop()] == loops


def test_who_leaves_because_of_what_another_one_hears_is_not_told() -> None:
    last = Ear()
    audience = Audience[Ear](lambda: None)
    audience.join(Ear(at_end=lambda: audience.leave(last)))
    audience.join(last)
    audience.end(None)

    assert [] == last.heard


def test_nobody_joins_a_run_that_is_over() -> None:
    audience = Audience[Ear](lambda: None)
    audience.end(None)

    with pytest.raises(RuntimeError, match="over"):
        audience.join(Ear())


@given(st.lists(st.tuples(st.sampled_from(["join", "leave", "end", "fail"]), st.integers(0, 3)), max_size=12))
def test_in_any_order_of_events_a_run_is_over_once_and_a_failure_is_heard_by_all_who_are_there_or_by_the_hook(
    events: list[tuple[str, int]],
) -> None:
    deserted, dropped, ears = list[str](), list[BaseException](), [Ear() for _ in range(4)]
    audience = Audience[Ear](lambda: deserted.append("deserted"), dropped.append)
    there, over, expected = set[int](), "", [list[Any]() for _ in ears]
    lost = list[BaseException]()
    for event, n in events:
        error = OSError(event) if event == "fail" else None
        if event == "join" and not over:
            audience.join(ears[n])
            there.add(n)
        elif event == "leave":
            audience.leave(ears[n])
            over = over or ("deserted" if there == {n} else "")
            there.discard(n)
        elif event in {"end", "fail"}:
            audience.end(error)
            for each in there:
                expected[each].append(error or "end")
            lost += [error] if error is not None and not there else []
            over, there = over or "ended", set()
        assert bool(over) == audience.over

    assert expected == [ear.heard for ear in ears]
    assert lost == dropped
    assert ["deserted"] * (over == "deserted") == deserted
