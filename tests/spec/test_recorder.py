"""The recorder writes down calls, and changes none of them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import pytest

from reactive_aio.spec.recorder import RecordedSubscriber, Recorder
from reactive_aio.spec.trace import Facts, Kind, Signal
from reactive_aio.testing.running import run_virtual
from tests import subscribers
from tests.subscribers import ByHand


def kinds(recorder: Recorder) -> list[Kind]:
    return [signal.kind for signal in recorder.signals]


def test_calls_pass_and_each_leaves_its_beginning_and_its_end() -> None:
    recorder, subscriber, publisher = Recorder(), subscribers.Recorder(request=2), ByHand()
    recorder.publisher(publisher).subscribe(subscriber)
    publisher.next("a")
    publisher.complete()
    subscriber.cancel()

    assert subscriber.signals == [("subscribe", None), ("next", "a"), ("complete", None)]
    assert (publisher.requests, publisher.cancels) == ([2], 1)
    assert kinds(recorder) == [
        *(Kind.SUBSCRIBE, Kind.ON_SUBSCRIBE, Kind.REQUEST, Kind.RETURNED, Kind.RETURNED, Kind.RETURNED),
        *(Kind.ON_NEXT, Kind.RETURNED, Kind.ON_COMPLETE, Kind.RETURNED, Kind.CANCEL, Kind.RETURNED),
    ]
    assert [signal.at for signal in recorder.signals] == list(range(12))
    assert [signal.call for signal in recorder.signals] == [0, 1, 2, 2, 1, 0, 6, 6, 8, 8, 10, 10]
    assert [signal.within for signal in recorder.signals] == [None, 0, 1, 1, 0, *[None] * 7]
    assert [signal.stream for signal in recorder.signals] == [1] * 12
    assert [signal.link for signal in recorder.signals] == [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1]


def test_values_are_those_that_were_passed() -> None:
    recorder, publisher, error = Recorder(), ByHand(), OSError("no")
    subscriber = subscribers.Recorder(request=3)
    recorder.publisher(publisher).subscribe(subscriber)
    publisher.next("a")
    publisher.error(error)
    calls = recorder.trace().calls.values()

    assert [call.value for call in calls if call.kind in {Kind.REQUEST, Kind.ON_NEXT, Kind.ON_ERROR}] == [3, "a", error]
    assert [call.entry.link for call in calls] == [0, 1, 1, 0, 0]
    assert [repr(call.value) for call in calls][:2] == [
        f"<Recorder at {id(subscriber):#x}>",
        f"<ByHand at {id(publisher):#x}>",
    ]


def test_an_exception_of_a_call_is_written_down_and_goes_on() -> None:
    class Clumsy(subscribers.Recorder):
        def on_next(self, item: Any) -> None:
            raise OSError(item)

    recorder = Recorder()
    recorded = recorder.subscriber(Clumsy())
    with pytest.raises(OSError, match="a") as raised:
        recorded.on_next("a")
    recorded.on_complete()

    assert kinds(recorder) == [Kind.ON_NEXT, Kind.RAISED, Kind.ON_COMPLETE, Kind.RETURNED]
    assert recorder.signals[1].value is raised.value
    assert recorder.signals[1].call == 0
    assert [signal.within for signal in recorder.signals] == [None] * 4


class Watching:
    """A judge that looks on, or raises."""

    def __init__(self, recorder: Recorder, error: Exception | None = None) -> None:
        self.recorder, self.error = recorder, error
        self.told: list[tuple[str, Signal]] = []

    def enter(self, signal: Signal) -> None:
        assert signal is self.recorder.signals[-1]
        self.told.append(("enter", signal))
        if self.error is not None:
            raise self.error

    def leave(self, signal: Signal) -> None:
        assert signal is self.recorder.signals[-1]
        self.told.append(("leave", signal))


def test_a_judge_is_called_before_and_after() -> None:
    recorder, subscriber, publisher = Recorder(), subscribers.Recorder(request=1), ByHand()
    judge = Watching(recorder)
    publisher.subscribe(recorder.subscriber(subscriber, judge))

    assert [(when, signal.kind) for when, signal in judge.told] == [
        ("enter", Kind.ON_SUBSCRIBE),
        ("enter", Kind.REQUEST),
        ("leave", Kind.RETURNED),
        ("leave", Kind.RETURNED),
    ]


def test_a_judge_keeps_a_call_from_being_made() -> None:
    recorder, subscriber = Recorder(), subscribers.Recorder()
    judge = Watching(recorder, ValueError("broken"))
    recorded = recorder.subscriber(subscriber, judge)
    with pytest.raises(ValueError, match="broken"):
        recorded.on_next("a")

    assert subscriber.signals == []
    assert [(when, signal.kind) for when, signal in judge.told] == [("enter", Kind.ON_NEXT), ("leave", Kind.RAISED)]


def test_a_judge_is_called_for_cancel_too() -> None:
    recorder, subscriber, publisher = Recorder(), subscribers.Recorder(), ByHand()
    judge = Watching(recorder)
    publisher.subscribe(recorder.subscriber(subscriber, judge))
    subscriber.cancel()

    assert [signal.kind for when, signal in judge.told if when == "enter"] == [Kind.ON_SUBSCRIBE, Kind.CANCEL]


def test_streams_and_subscriptions_are_numbered_from_one() -> None:
    recorder = Recorder()
    first, second = recorder.subscriber(subscribers.Recorder()), recorder.subscriber(subscribers.Recorder())
    first.on_subscribe(ByHand())
    second.on_subscribe(ByHand())

    assert [(call.entry.stream, call.entry.link) for call in recorder.trace().calls.values()] == [(1, 1), (2, 2)]


def test_none_passes_as_it_is() -> None:
    seen: list[Any] = []

    class Anything:
        def on_subscribe(self, subscription: Any) -> None:
            seen.append(subscription)

        def subscribe(self, subscriber: Any) -> None:
            seen.append(subscriber)

    recorder = Recorder()
    recorder.subscriber(Anything()).on_subscribe(None)

    assert recorder.connect(Anything(), None) is None
    assert seen == [None, None]
    assert [repr(call.value) for call in recorder.trace().calls.values()] == ["None", "None"]
    assert [call.entry.stream for call in recorder.trace().calls.values()] == [1, 2]


def test_the_recorder_keeps_no_subscriber_alive() -> None:
    recorder, publisher = Recorder(), ByHand()
    reference = recorder.connect(publisher, subscribers.Recorder())

    assert reference is not None
    assert isinstance(reference(), RecordedSubscriber)
    publisher.subscribers.clear()
    assert reference() is None


def test_a_trace_holds_what_was_recorded_so_far_and_what_is_known() -> None:
    recorder = Recorder()
    recorder.subscriber(subscribers.Recorder()).on_complete()
    early = recorder.trace()
    recorder.rest()
    late = recorder.trace(Facts(at_rest=True))

    assert [signal.kind for signal in early.signals] == [Kind.ON_COMPLETE, Kind.RETURNED]
    assert early.facts == Facts()
    assert late.signals[-1].kind is Kind.REST
    assert (late.signals[-1].stream, late.signals[-1].link, late.signals[-1].call) == (0, 0, 2)
    assert late.facts.at_rest


async def test_a_call_is_placed_by_loop_and_task_and_time() -> None:
    recorder = Recorder()
    loop = asyncio.get_running_loop()
    before = loop.time()
    recorder.subscriber(subscribers.Recorder()).on_complete()
    entry = recorder.signals[0]

    assert (entry.loop, entry.thread) == (id(loop), threading.get_ident())
    task = asyncio.current_task()
    assert task is not None
    assert entry.task == task.get_name()
    assert before <= entry.time <= loop.time()


def test_a_call_without_a_loop_is_placed_by_the_clock() -> None:
    recorder = Recorder()
    recorder.subscriber(subscribers.Recorder()).on_complete()
    entry, end = recorder.signals

    assert (entry.loop, entry.task) == (None, None)
    assert entry.time == entry.clock <= end.clock


def test_each_thread_has_calls_of_its_own_on_the_stack() -> None:
    recorder = Recorder()
    other = recorder.subscriber(subscribers.Recorder())

    class Handing(subscribers.Recorder):
        def on_next(self, item: Any) -> None:
            thread = threading.Thread(target=other.on_complete)
            thread.start()
            thread.join()

    recorder.subscriber(Handing()).on_next(1)
    outer, inner = recorder.trace().calls.values()

    assert inner.entry.within is None
    assert inner.entry.thread != outer.entry.thread


def test_the_depth_of_a_call_is_that_of_the_stack() -> None:
    recorder = Recorder()
    recorded = recorder.subscriber(subscribers.Recorder())

    def deeper() -> None:
        recorded.on_complete()

    recorded.on_complete()
    deeper()
    here, _, there, _ = recorder.signals

    assert there.depth == here.depth + 1


def test_the_depth_counts_the_frames_down_to_the_call() -> None:
    recorder = Recorder()
    frames: list[int] = []

    class Counting(subscribers.Recorder):
        def on_complete(self) -> None:
            frames.append(len(inspect.stack(0)))

    recorder.subscriber(Counting()).on_complete()

    assert [recorder.signals[0].depth + 1] == frames


def test_the_clock_of_the_loop_counts() -> None:
    async def main() -> tuple[float, Signal]:
        recorder = Recorder()
        await asyncio.sleep(1e6)
        recorder.subscriber(subscribers.Recorder()).on_complete()
        return asyncio.get_running_loop().time(), recorder.signals[0]

    time, entry = run_virtual(main())

    assert entry.time == time > entry.clock
