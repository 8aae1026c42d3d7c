"""The operators that observe a flow: do_on_next and its kin, log, checkpoint."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from tests.subscribers import ByHand, Recorder, idle

BROKEN = Flow.of(1, 2).concat(Flow.error(lambda: OSError("down")))
METHODS = [
    "do_finally",
    "do_on_next",
    "do_on_error",
    "do_on_complete",
    "do_on_subscribe",
    "do_on_request",
    "do_on_cancel",
]


class Notes(list[Any]):
    """The observations, in order."""

    def note(self, name: str) -> Callable[..., None]:
        return lambda *seen: self.append((name, *seen))

    def on_all(self, flow: Flow[int]) -> Flow[int]:
        for method in METHODS:
            flow = getattr(flow, method)(self.note(method.removeprefix("do_")))
        return flow


def raising(*_: object) -> Any:
    raise LookupError("broken")


async def test_a_flow_that_completes_is_seen_from_end_to_end() -> None:
    notes = Notes()

    assert [1, 2] == await notes.on_all(Flow.of(1, 2)).to_list()
    assert [
        ("on_subscribe",), ("on_request", UNBOUNDED), ("on_next", 1), ("on_next", 2), ("on_complete",), ("finally",),
    ] == notes  # fmt: skip


async def test_a_flow_that_fails_is_seen_from_end_to_end() -> None:
    notes = Notes()

    with pytest.raises(OSError, match="down") as failed:
        await notes.on_all(BROKEN).to_list()

    assert ["on_subscribe", "on_request", "on_next", "on_next", "on_error", "finally"] == [name for name, *_ in notes]
    assert ("on_error", failed.value) == notes[-2]


async def test_a_flow_that_is_stopped_is_seen_from_end_to_end() -> None:
    notes = Notes()

    assert [0] == await notes.on_all(Flow.range(9)).take(1).to_list()
    assert [("on_subscribe",), ("on_request", 1), ("on_next", 0), ("on_cancel",), ("finally",)] == notes


async def test_a_flow_that_is_cancelled_is_seen_from_end_to_end() -> None:
    notes, recorder, source = Notes(), Recorder(3), ByHand()
    notes.on_all(Flow.from_publisher(source)).subscribe(recorder)
    await idle()
    recorder.cancel()
    await idle()

    assert [("on_subscribe",), ("on_request", 3), ("on_cancel",), ("finally",)] == notes
    assert 1 == source.cancels


async def test_each_element_goes_on_before_the_next_is_seen() -> None:
    seen: list[Any] = []
    await Flow.range(2).do_on_next(seen.append).map(str).for_each(seen.append)

    assert [0, "0", 1, "1"] == seen


async def test_nothing_is_seen_before_a_subscription_and_everything_at_each() -> None:
    notes = Notes()
    flow = notes.on_all(Flow.of(1))
    assert [] == notes

    await flow.to_list()
    once = list(notes)
    await flow.to_list()
    assert once + once == notes


async def test_a_flow_that_is_not_read_is_not_seen() -> None:
    notes = Notes()

    assert [] == await notes.on_all(Flow.of(1)).take(0).to_list()
    assert [] == notes


async def test_demand_passes_one_for_one() -> None:
    source, recorder = ByHand(), Recorder(3)
    Notes().on_all(Flow.from_publisher(source)).subscribe(recorder)
    await idle()
    recorder.request(2)
    await idle()

    assert [3, 2] == source.requests


async def test_the_end_is_seen_before_it_is_told() -> None:
    seen: list[str] = []

    class Listening(Recorder):
        def on_complete(self) -> None:
            seen.append("told")
            super().on_complete()

    recorder = Listening(9)
    flow = Flow.of(1).do_on_complete(lambda: seen.append("seen")).do_finally(lambda: seen.append("finally"))
    flow.subscribe(recorder)
    await idle()

    assert ["seen", "told", "finally"] == seen


async def test_do_finally_comes_before_the_end_that_is_awaited_returns() -> None:
    seen: list[str] = []

    async def endless() -> AsyncIterator[int]:
        while True:
            await asyncio.sleep(0)
            yield 1

    async with Flow.from_async_iterable(endless()).do_finally(lambda: seen.append("over")).open() as items:
        await anext(items)
        assert [] == seen
    assert ["over"] == seen


BEHIND: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "nothing": lambda flow: flow,
    "a look": lambda flow: flow.do_on_error(raising),
    "several": lambda flow: flow.do_on_error(raising).do_on_discard(lambda _: None).do_on_complete(lambda: None),
}


@pytest.mark.parametrize("then", BEHIND)
@pytest.mark.usefixtures("hurried")
async def test_do_finally_comes_when_all_elements_are_through_however_short_the_turns_are(then: str) -> None:
    seen: list[Any] = []
    await BEHIND[then](Flow.range(9).do_finally(lambda: seen.append("over"))).map(lambda n: seen.append(n) or n).drain()

    assert [*range(9), "over"] == seen


@pytest.mark.parametrize("then", BEHIND)
@pytest.mark.usefixtures("hurried")
async def test_do_finally_comes_once_where_a_cancel_meets_elements_that_the_end_is_behind(then: str) -> None:
    seen: list[Any] = []
    discarded: list[int] = []

    with hooks.using(on_discard=discarded.append):
        flow = BEHIND[then](Flow.range(9).do_finally(lambda: seen.append("over")))
        assert [0, 1] == await flow.map(lambda n: seen.append(n) or n).take_while(lambda n: n < 2).to_list()

    assert [0, 1, 2, "over"] == seen
    assert [*range(3, 9)] == discarded


@pytest.mark.usefixtures("hurried")
async def test_do_finally_comes_behind_another_one_that_follows_it() -> None:
    seen: list[Any] = []
    flow = Flow.range(9).do_finally(lambda: seen.append("first")).do_finally(lambda: seen.append("second"))
    await flow.map(lambda n: seen.append(n) or n).drain()

    assert [*range(9), "second", "first"] == seen


async def test_do_finally_comes_once_where_a_failure_and_a_cancel_meet() -> None:
    seen: list[str] = []
    source, recorder = ByHand(), Recorder(9)
    Flow.from_publisher(source).do_finally(lambda: seen.append("over")).subscribe(recorder)
    await idle()
    recorder.cancel()
    source.error(OSError())
    await idle()

    assert ["over"] == seen


# -- functions that fail


@pytest.mark.parametrize("method", ["do_on_next", "do_on_complete", "do_on_subscribe"])
async def test_a_failing_function_fails_the_flow(method: str) -> None:
    with pytest.raises(LookupError, match="broken"):
        await getattr(Flow.of(1), method)(raising).to_list()


async def test_a_failing_do_on_error_has_the_failure_as_its_context() -> None:
    with pytest.raises(LookupError, match="broken") as failed:
        await BROKEN.do_on_error(raising).to_list()

    assert isinstance(failed.value.__context__, OSError)


async def test_a_failing_do_on_subscribe_keeps_the_flow_from_being_subscribed_to() -> None:
    source = ByHand()

    with pytest.raises(LookupError, match="broken"):
        await Flow.from_publisher(source).do_on_subscribe(raising).to_list()

    assert [] == source.subscribers


@pytest.mark.parametrize("method", ["do_on_request", "do_on_cancel", "do_finally"])
async def test_an_exception_of_a_function_arrives_at_the_end_that_is_awaited(method: str) -> None:
    dropped: list[BaseException] = []

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(LookupError, match="broken"):
        await getattr(Flow.of(1, 2), method)(raising).take(1).to_list()

    assert [] == dropped


@pytest.mark.parametrize("method", ["do_on_cancel", "do_finally"])
async def test_an_exception_of_a_function_behind_a_failure_is_noted_and_reported(method: str) -> None:
    dropped: list[BaseException] = []

    with hooks.using(on_error_dropped=dropped.append), pytest.raises(ZeroDivisionError) as failed:
        await getattr(Flow.of(0), method)(raising).map(lambda n: 1 / n).to_list()

    assert ["broken"] == [str(error) for error in dropped]
    assert "a further failure: LookupError: broken" in failed.value.__notes__


@pytest.mark.parametrize("method", ["do_on_cancel", "do_finally"])
async def test_an_exception_of_a_function_behind_a_cancel_is_reported(method: str) -> None:
    dropped: list[BaseException] = []

    with hooks.using(on_error_dropped=dropped.append):
        task = asyncio.ensure_future(getattr(Flow.never(), method)(raising).to_list())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert ["broken"] == [str(error) for error in dropped]


async def test_the_functions_run_in_the_context_of_the_subscriber() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")
    seen: list[str] = []

    def note(*_: object) -> None:
        seen.append(name.get())

    flow: Flow[int] = BROKEN
    for method in METHODS:
        flow = getattr(flow, method)(note)
    name.set("subscriber")
    with pytest.raises(OSError, match="down"):
        await flow.to_list()

    assert {"subscriber"} == set(seen)
    assert 6 == len(seen)


@pytest.mark.parametrize("method", METHODS)
def test_an_argument_that_is_no_ordinary_function_is_refused_when_the_flow_is_built(method: str) -> None:
    async def later(*_: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=f"{method}.*async def"):
        getattr(Flow.of(1), method)(later)
    with pytest.raises(TypeError, match=f"{method}.*function, not int"):
        getattr(Flow.of(1), method)(3)


def test_the_stage_travels_to_workers() -> None:
    stage = Flow.of(1).do_on_next(print).__nodes__.steps[0].operator

    assert stage == pickle.loads(pickle.dumps(stage))


def test_the_operators_are_shown_as_they_were_written() -> None:
    assert "Flow.do_on_error(print)" == repr(Flow.of(1).do_on_error(print))
    assert "range(0, 9) -> do_on_next(print)" in Flow.range(9).do_on_next(print).describe()


# -- log and checkpoint


async def test_log_writes_every_signal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "numbers")
    with pytest.raises(OSError, match="down"):
        await BROKEN.log("numbers", level=logging.DEBUG).to_list()
    await Flow.range(9).log("numbers", level=logging.DEBUG).take(1).to_list()

    written = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "numbers"]
    assert [
        ("DEBUG", "subscribe"), ("DEBUG", "request(unbounded)"), ("DEBUG", "next(1)"), ("DEBUG", "next(2)"),
        ("ERROR", "error(OSError('down'))"),
        ("DEBUG", "subscribe"), ("DEBUG", "request(1)"), ("DEBUG", "next(0)"), ("DEBUG", "cancel"),
    ] == written  # fmt: skip


@pytest.mark.parametrize(("name", "level"), [(1, 10), (None, 10), ("numbers", "DEBUG"), ("numbers", True)])
def test_log_takes_a_name_and_a_level(name: Any, level: Any) -> None:
    with pytest.raises(TypeError, match="log"):
        Flow.of(1).log(name, level=level)


async def test_a_checkpoint_notes_itself_on_the_failures_that_pass() -> None:
    with pytest.raises(OSError, match="down") as failed:
        await BROKEN.checkpoint("first").map(str).checkpoint("second").to_list()

    noted = [note for note in failed.value.__notes__ if "passed checkpoint" in note]
    assert ["'first'", "'second'"] == [note.split()[2].rstrip(",") for note in noted]
    assert all(__file__ in note for note in noted)


async def test_a_checkpoint_is_noted_once_for_an_error_that_passes_again() -> None:
    error = OSError("down")

    with pytest.raises(OSError, match="down"):
        await Flow.error(error).checkpoint("here").retry(2).to_list()

    assert 1 == sum("passed checkpoint" in note for note in error.__notes__)


async def test_failures_behind_a_checkpoint_do_not_pass_it() -> None:
    with pytest.raises(ZeroDivisionError) as failed:
        await Flow.of(0).checkpoint("here").map(lambda n: 1 // n).to_list()

    assert not any("passed checkpoint" in note for note in failed.value.__notes__)


def test_a_checkpoint_takes_a_description() -> None:
    with pytest.raises(TypeError, match="checkpoint"):
        Flow.of(1).checkpoint(3)


# -- do_on_discard


@pytest.mark.parametrize("end", ["complete", "error", "cancel"])
async def test_an_element_is_told_when_it_will_not_leave_the_flow_and_no_other(end: str) -> None:
    discarded: list[int] = []
    recorder, source = Recorder(9), ByHand()
    Flow.from_publisher(source).skip_last(1).buffer(2).do_on_discard(discarded.append).subscribe(recorder)
    await idle()
    for n in range(4):
        source.next(n)
    await idle()
    recorder.cancel() if end == "cancel" else source.complete() if end == "complete" else source.error(OSError("down"))
    await idle()

    assert [[0, 1]] + [[2]] * (end == "complete") == recorder.items
    assert sorted([3] + [2] * (end != "complete")) == sorted(discarded)


@pytest.mark.usefixtures("still")
async def test_an_element_that_nobody_behind_has_begun_with_is_told() -> None:
    discarded: list[int] = []
    recorder = Recorder(9)
    flow = Flow.range(9).do_on_discard(discarded.append)

    assert [0] == await flow.take_while(lambda n: n < 1).to_list()
    assert [*range(2, 9)] == discarded

    discarded.clear()
    Flow.range(2).map(lambda n: recorder.cancel() or n).do_on_discard(discarded.append).subscribe(recorder)
    await idle()
    assert [0, 1] == recorder.items + discarded


async def test_what_is_discarded_behind_is_not_told() -> None:
    discarded: list[int] = []
    flow = Flow.range(9).do_on_discard(discarded.append).skip_last(2).buffer(2).take(1)

    assert [[0, 1]] == await flow.publish_on(schedulers.current(), prefetch=3).to_list()
    assert [] == discarded


async def test_the_hook_of_the_subscriber_is_told_behind_the_function_and_though_it_fails() -> None:
    seen: list[Any] = []
    dropped: list[BaseException] = []
    flow = Flow.range(3).publish_on(schedulers.current()).do_on_discard(lambda n: seen.append(("fn", n)) or raising())

    with hooks.using(on_discard=lambda n: seen.append(("hook", n)), on_error_dropped=dropped.append):
        assert [0] == await flow.take(1).to_list()

    assert [("fn", 1), ("hook", 1), ("fn", 2), ("hook", 2)] == seen
    assert ["broken", "broken"] == [str(each) for each in dropped]


@pytest.mark.usefixtures("still")
async def test_the_inner_flows_are_part_of_the_flow() -> None:
    made: list[int] = []
    discarded: list[int] = []

    def numbers(start: int) -> Flow[int]:
        return Flow.range(start, start + 9).do_on_next(made.append)

    merged = numbers(0).merge(numbers(10).publish_on(schedulers.current(), prefetch=2), prefetch=2)
    taken = await Flow.empty().concat(merged).do_on_discard(discarded.append).take(1).to_list()

    assert sorted(made) == sorted(taken + discarded)
    assert len(discarded) > 1


async def test_each_of_two_is_told_of_its_own() -> None:
    inner: list[Any] = []
    outer: list[Any] = []
    flow = (
        Flow.range(5)
        .publish_on(schedulers.current(), prefetch=3)
        .do_on_discard(inner.append)
        .buffer(2)
        .do_on_discard(outer.append)
    )

    async with flow.open() as items:
        assert [0, 1] == await anext(items)

    assert [2, 3, 4][: len(inner)] == inner == outer
    assert inner


async def test_a_function_behind_it_runs_in_the_context_of_the_subscriber() -> None:
    here: contextvars.ContextVar[str] = contextvars.ContextVar("here", default="unset")
    here.set("the subscriber's")
    discarded: list[int] = []
    flow = Flow.of(1).map(lambda n: (n, here.get())).do_on_discard(discarded.append)

    assert [((1, "the subscriber's"), "the subscriber's")] == await flow.map(lambda item: (item, here.get())).to_list()
    assert [2] == await flow.map(lambda _: hooks.discard([1]) or 2).to_list()
    assert [] == discarded


async def store(_: object = None) -> None:
    raise AssertionError("nobody awaits it")


@pytest.mark.parametrize("method", METHODS)
async def test_a_coroutine_that_nobody_would_await_is_refused(method: str) -> None:
    """An ``async def`` is refused when the flow is built, a lambda that calls one when it is called."""
    failures: list[BaseException] = []
    flow: Flow[int] = BROKEN if method == "do_on_error" else Flow.range(5)
    shown: Flow[int] = getattr(flow, method)(lambda *_: store())
    if method == "do_on_cancel":
        shown = shown.take(2)

    with hooks.using(on_error_dropped=failures.append):
        try:
            await shown.to_list()
        except (TypeError, OSError) as error:
            failures.append(error)
        await idle()

    told = [error for error in failures if "<lambda> returned a coroutine, and nobody awaits it" in str(error)]
    assert [TypeError] == [type(error) for error in told]
