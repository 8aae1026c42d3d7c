"""The edges: what is refused at once, and what is signalled."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from reactive_aio import Flow, ProtocolViolation, hooks, schedulers
from tests.subscribers import ByHand, Recorder, idle

# -- towards subscribers


@pytest.mark.parametrize("n", [0, -1, -(2**63)])
async def test_bad_demand_is_signalled_with_the_rule_and_not_raised(n: int) -> None:
    recorder = Recorder()
    Flow.range(3).subscribe(recorder)

    recorder.request(n)
    assert recorder.kinds == ["subscribe"]  # nothing is delivered from inside request
    await idle()

    assert recorder.kinds == ["subscribe", "error"]
    assert isinstance(recorder.error, ValueError)
    assert "§3.9" in str(recorder.error)


@pytest.mark.parametrize("n", [True, 1.5, "1", None])
async def test_demand_that_is_no_number_is_signalled_as_a_type_error(n: Any) -> None:
    recorder = Recorder()
    Flow.range(3).subscribe(recorder)
    recorder.request(n)
    await idle()

    assert isinstance(recorder.error, TypeError)


async def test_bad_demand_cancels_the_source() -> None:
    source = ByHand()
    recorder = Recorder()
    Flow.from_publisher(source).subscribe(recorder)
    await idle()
    recorder.request(-1)
    await idle()

    assert source.cancels == 1


async def test_request_and_cancel_after_the_end_do_nothing() -> None:
    recorder = Recorder(request=3)
    Flow.range(3).subscribe(recorder)
    await idle()
    recorder.request(1)
    recorder.request(-1)
    recorder.cancel()
    recorder.cancel()
    await idle()

    assert recorder.kinds == ["subscribe", "next", "next", "next", "complete"]


async def test_request_after_cancel_does_nothing_even_if_it_is_wrong() -> None:
    recorder = Recorder()
    Flow.range(3).subscribe(recorder)
    recorder.cancel()
    recorder.request(1)
    recorder.request(-1)
    await idle()

    assert recorder.kinds == ["subscribe"]


async def test_demand_saturates() -> None:
    recorder = Recorder()
    Flow.range(5).subscribe(recorder)
    recorder.request(2**63 - 1)
    recorder.request(2**63 - 1)
    recorder.request(2**200)
    await idle()

    assert recorder.items == [0, 1, 2, 3, 4]
    assert recorder.kinds[-1] == "complete"


async def test_no_subscriber_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"subscribe\(None\)"):
        Flow.range(3).subscribe(None)
    with pytest.raises(TypeError, match="on_subscribe, on_next"):
        Flow.range(3).subscribe(object())


async def test_an_async_handler_is_refused_with_the_way_out() -> None:
    class Async(Recorder):
        async def on_next(self, item: object) -> None:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
            """The mistake."""

    with pytest.raises(TypeError, match="for_each"):
        Flow.range(3).subscribe(Async())


async def test_none_does_not_leave_the_flow_and_the_operator_is_named() -> None:
    recorder = Recorder(request=10)
    Flow.range(3).map(lambda n: None if n == 1 else n).filter(lambda n: True).take(3).subscribe(recorder)
    await idle()

    assert recorder.items == [0]
    assert isinstance(recorder.error, TypeError)
    assert "§2.13" in str(recorder.error)
    assert "map(<lambda>)" in str(recorder.error)


async def test_a_source_of_none_is_named_whatever_passes_it_on() -> None:
    recorder = Recorder(request=10)
    Flow.of(None).take(3).publish_on(schedulers.current()).subscribe(recorder)
    await idle()

    assert "It was made in of(None), chained at" in str(recorder.error)


async def test_a_subscriber_that_raises_is_cancelled_and_its_error_reported() -> None:
    dropped: list[BaseException] = []
    source = ByHand()

    class Broken(Recorder):
        def on_next(self, item: object) -> None:
            raise LookupError("in on_next")

    with hooks.using(on_error_dropped=dropped.append):
        recorder = Broken(request=10)
        Flow.from_publisher(source).subscribe(recorder)
        await idle()
    source.next(1)
    source.next(2)
    await idle()

    assert [str(error) for error in dropped] == ["in on_next"]
    assert recorder.kinds == ["subscribe"]
    assert source.cancels == 1


async def test_the_loops_exception_handler_hears_of_dropped_errors_by_default() -> None:
    heard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))

    class Broken(Recorder):
        def on_complete(self) -> None:
            raise LookupError("in on_complete")

    Flow.empty().subscribe(Broken())
    await idle()

    assert [str(context["exception"]) for context in heard] == ["in on_complete"]


async def test_requesting_in_on_next_keeps_the_stack_flat() -> None:
    depths: set[int] = set()

    class OneByOne(Recorder):
        def on_next(self, item: object) -> None:
            import sys

            frame, depth = sys._getframe(), 0
            while frame is not None:
                frame, depth = frame.f_back, depth + 1
            depths.add(depth)
            self.request(1)

    recorder = OneByOne(request=1)
    Flow.range(10_000).subscribe(recorder)
    await asyncio.wait_for(recorder.over.wait(), 30)

    assert max(depths) - min(depths) <= 2


# -- from publishers


async def test_none_from_a_publisher_is_refused_and_ends_the_stream() -> None:
    source = ByHand()
    recorder = Recorder(request=10)
    Flow.from_publisher(source).subscribe(recorder)
    await idle()

    with pytest.raises(TypeError, match=r"§2\.13"):
        source.next(None)
    await idle()

    assert isinstance(recorder.error, TypeError)
    assert source.cancels == 1


async def test_signals_without_their_argument_are_refused() -> None:
    source = ByHand()
    Flow.from_publisher(source).subscribe(Recorder())
    await idle()

    with pytest.raises(TypeError):
        source.subscribers[0].on_subscribe(None)
    with pytest.raises(TypeError):
        source.error(None)


async def test_more_elements_than_requested_are_a_violation_by_rule() -> None:
    source = ByHand()
    recorder = Recorder(request=1)
    Flow.from_publisher(source).subscribe(recorder)
    await idle()
    source.next(1)
    source.next(2)
    await idle()

    assert recorder.items == [1]
    assert isinstance(recorder.error, ProtocolViolation)
    assert "§1.1" in str(recorder.error)
    assert source.cancels == 1


async def test_a_second_subscription_is_cancelled() -> None:
    first, second = ByHand(), ByHand()
    recorder = Recorder(request=1)
    Flow.from_publisher(first).subscribe(recorder)
    await idle()
    first.subscribers[0].on_subscribe(second)
    await idle()

    assert (first.cancels, second.cancels) == (0, 1)


async def test_signals_after_the_end_are_ignored_and_errors_reported() -> None:
    dropped: list[BaseException] = []
    source = ByHand()
    recorder = Recorder(request=10)
    with hooks.using(on_error_dropped=dropped.append):
        Flow.from_publisher(source).subscribe(recorder)
        await idle()
        source.complete()
        source.next(1)
        source.complete()
        source.error(OSError("late"))
        await idle()

    assert recorder.kinds == ["subscribe", "complete"]
    assert [str(error) for error in dropped] == ["late"]


async def test_a_publisher_that_raises_in_subscribe_fails_the_stream() -> None:
    class Broken:
        def subscribe(self, subscriber: object) -> None:
            raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        await Flow.from_publisher(Broken()).to_list()


async def test_a_publisher_may_speak_on_its_own_thread() -> None:
    class Threaded:
        def subscribe(self, subscriber: Any) -> None:
            asked = threading.Semaphore(0)

            class Handle:
                def request(self, n: int) -> None:
                    asked.release(min(n, 1_000))

                def cancel(self) -> None: ...

            def run() -> None:
                subscriber.on_subscribe(Handle())
                for n in range(500):
                    asked.acquire()
                    subscriber.on_next(n)
                subscriber.on_complete()

            threading.Thread(target=run).start()

    where: set[int] = set()
    flow = Flow.from_publisher(Threaded()).map(lambda n: where.add(threading.get_ident()) or n)

    assert await flow.to_list() == list(range(500))
    assert where == {threading.get_ident()}


async def test_every_subscription_uses_a_subscriber_of_its_own() -> None:
    source = ByHand()
    flow = Flow.from_publisher(source)
    flow.subscribe(Recorder())
    flow.subscribe(Recorder())
    await idle()

    assert len(set(map(id, source.subscribers))) == 2


# -- when the flow is built


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: Flow.range(3).take(-1), ValueError, "at least 0"),
        (lambda: Flow.range(3).skip(1.5), TypeError, "whole number"),
        (lambda: Flow.range(3).repeat(-1), ValueError, "at least 0"),
        (lambda: Flow.range(3).retry(True), TypeError, "number of retries"),
        (lambda: Flow.range(3).map(3), TypeError, "takes a function, not int"),
        (lambda: Flow.range(3).publish_on("thread"), TypeError, "scheduler"),
        (lambda: Flow.range(3).publish_on(schedulers.current(), prefetch=0), ValueError, "at least 1"),
        (lambda: Flow.range(3).concat([1]), TypeError, "from_iterable"),
        (lambda: Flow.range(3).on_error_resume_next(3), TypeError, "function"),
        (lambda: Flow.from_iterable(3), TypeError, "iterable"),
        (lambda: Flow.from_async_iterable([1]), TypeError, "async iterable"),
        (lambda: Flow.from_publisher([1]), TypeError, "subscribe"),
        (lambda: Flow.create(print), TypeError, "async def"),
        (lambda: schedulers.thread(""), ValueError, "name"),
        (lambda: schedulers.thread(3), TypeError, "takes a name, not int"),
        (lambda: Flow.of(1).on_error_resume_next(3), TypeError, "a flow or a function that returns one, not int"),
        (lambda: schedulers.loop(3), TypeError, "event loop"),
    ],
)
def test_bad_arguments_are_refused_when_the_flow_is_built(build: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        build()


@pytest.mark.parametrize("method", ["map", "filter", "defer", "on_error_resume_next"])
def test_an_async_function_is_refused_where_an_ordinary_one_is_needed(method: str) -> None:
    async def fn(*_: object) -> None: ...

    with pytest.raises(TypeError, match="async def"):
        getattr(Flow.range(3), method)(fn)


def test_a_flow_shows_its_chain() -> None:
    flow = Flow.range(5).filter(bool).map(str).publish_on(schedulers.thread("io"), prefetch=16).take(2)

    expected = "Flow.range(0, 5).filter(bool).map(str).publish_on(thread('io'), prefetch=16).take(2)"
    assert repr(flow) == expected


def test_building_a_flow_runs_nothing_and_changes_nothing() -> None:
    flow = Flow.range(5)
    flow.map(str).take(1)

    assert repr(flow) == "Flow.range(0, 5)"
    assert flow.run_sync() == [0, 1, 2, 3, 4]
