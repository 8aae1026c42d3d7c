"""Sources that behave oddly, under each of the combinators that stand on the arbiter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from reactive_aio import UNBOUNDED, Flow, ProtocolViolation, SchedulerClosedError, Subscription, hooks, schedulers
from reactive_aio._fusion import Stage, Transform
from tests.arbiter.sessions import Session, Sessions, gives
from tests.subscribers import Recorder, idle


class Combine(Protocol):
    def __call__(self, flow: Flow[Any], /) -> Flow[Any]: ...


COMPLETING: dict[str, Combine] = {
    "concat": lambda flow: flow.concat(flow),
    "repeat": lambda flow: flow.repeat(2),
}
RECOVERING: dict[str, Combine] = {
    "retry": lambda flow: flow.retry(1),
    "resume": lambda flow: flow.on_error_resume_next(flow),
}
PASSING: dict[str, Combine] = {"defer": lambda flow: Flow.defer(lambda: flow)}
ALL = COMPLETING | RECOVERING | PASSING


def combinators(some: dict[str, Combine]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("combine", some.values(), ids=some.keys())


def nothing(_: object) -> None:
    """A publisher that does nothing."""


# -- on_subscribe


@combinators(ALL)
async def test_a_publisher_that_never_calls_on_subscribe_can_be_cancelled(combine: Combine) -> None:
    publisher, subscriber = Sessions(on_subscribe=nothing), Recorder(1)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()

    assert ["subscribe"] == subscriber.kinds
    assert [[]] == publisher.requests


@combinators(ALL)
async def test_2_05_a_second_subscription_is_cancelled_and_the_first_goes_on(combine: Combine) -> None:
    publisher, intruder, subscriber = Sessions(), Sessions(), Recorder(2)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    intruder.subscribe(publisher.last.subscriber)
    publisher.last.next(1)
    await idle()

    assert ([[2]], [0]) == (publisher.requests, [session.cancels for session in publisher.all])
    assert ([[]], [1]) == (intruder.requests, [session.cancels for session in intruder.all])
    assert [1] == subscriber.items


@combinators(ALL)
async def test_a_subscription_that_comes_late_is_asked_once_for_all_that_has_gathered(combine: Combine) -> None:
    publisher, subscriber = Sessions(on_subscribe=nothing), Recorder(2)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    subscriber.request(3)
    await idle()
    publisher.last.subscriber.on_subscribe(publisher.last)
    await idle()

    assert [[5]] == publisher.requests


@combinators(ALL)
async def test_a_subscription_that_comes_after_cancel_is_cancelled(combine: Combine) -> None:
    publisher, subscriber = Sessions(on_subscribe=nothing), Recorder(2)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()
    publisher.last.subscriber.on_subscribe(publisher.last)
    await idle()

    assert ([], 1) == (publisher.last.requests, publisher.last.cancels)


# -- signals from inside request


@combinators(COMPLETING)
async def test_3_11_a_source_may_complete_inside_request(combine: Combine) -> None:
    publisher = Sessions(gives("a", "b"))

    assert ["a", "b", "a", "b"] == await combine(Flow.from_publisher(publisher)).to_list()


@combinators(RECOVERING)
async def test_3_11_a_source_may_fail_inside_request(combine: Combine) -> None:
    publisher, subscriber = Sessions(gives("a", error=OSError("down"))), Recorder(UNBOUNDED)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()

    assert ["a", "a"] == subscriber.items
    assert "down" == str(subscriber.error)


@combinators(COMPLETING)
async def test_a_source_that_completes_empty_inside_request_takes_nothing_of_the_demand(combine: Combine) -> None:
    publisher, subscriber = Sessions(gives()), Recorder(3)
    combine(Flow.from_publisher(publisher)).concat(Flow.range(10)).subscribe(subscriber)
    await idle()

    assert [[3], [3]] == publisher.requests
    assert [0, 1, 2] == subscriber.items


# -- broken rules


@combinators(COMPLETING | PASSING)
async def test_1_01_a_source_that_gives_more_than_it_was_asked_for_is_cancelled_and_fails(combine: Combine) -> None:
    publisher, subscriber = Sessions(), Recorder(2)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    publisher.last.next(1, 2, 3, 4)
    await idle()

    assert [1, 2] == subscriber.items
    assert isinstance(subscriber.error, ProtocolViolation)
    assert [1] == [session.cancels for session in publisher.all]


@combinators(RECOVERING)
async def test_1_01_what_a_source_gives_too_many_is_not_taken_off_the_demand_of_the_next(combine: Combine) -> None:
    publisher, subscriber = Sessions(), Recorder(2)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    publisher.last.next(1, 2, 3, 4)
    await idle()
    subscriber.request(1)
    await idle()

    assert [[2], [1]] == publisher.requests
    assert [1, 0] == [session.cancels for session in publisher.all]
    assert ["subscribe", "next", "next"] == subscriber.kinds


@combinators(COMPLETING | PASSING)
async def test_1_09_an_exception_of_subscribe_is_the_failure_of_the_source(combine: Combine) -> None:
    def refuse(session: object) -> None:
        raise OSError("no entry")

    with pytest.raises(OSError, match="no entry"):
        await combine(Flow.from_publisher(Sessions(on_subscribe=refuse))).to_list()


@combinators(RECOVERING)
async def test_1_09_an_exception_of_subscribe_is_recovered_from(combine: Combine) -> None:
    refusals = iter([True, False])

    def refuse(session: Any) -> None:
        if next(refusals):
            raise OSError("no entry")
        session.subscriber.on_subscribe(session)

    publisher = Sessions(gives("a"), on_subscribe=refuse)

    assert ["a"] == await combine(Flow.from_publisher(publisher)).to_list()


@combinators(ALL)
async def test_1_09_a_subscription_is_cancelled_if_subscribe_raises_behind_it(combine: Combine) -> None:
    def refuse(session: Session) -> None:
        session.subscriber.on_subscribe(session)
        raise OSError("no entry")

    publisher, subscriber = Sessions(on_subscribe=refuse), Recorder(1)
    combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()

    assert ["subscribe", "error"] == subscriber.kinds
    assert {1} == {session.cancels for session in publisher.all}
    assert {()} == {tuple(session.requests) for session in publisher.all}


class Unmade(Stage[Any, Any]):
    """A stage that can't be made for a subscription."""

    def transform(self) -> Transform[Any, Any]:
        raise OSError("no transform")


class Nowhere:
    """A scheduler that can't say where anything is."""

    name = "nowhere"

    def __init__(self, asked_in_vain: str) -> None:
        self.asked_in_vain = asked_in_vain

    def is_here(self) -> bool:
        if self.asked_in_vain == "is_here":
            raise OSError("no idea")
        return False

    def attach(self, lost: Callable[[BaseException], None]) -> Any:
        raise OSError("no place")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Flow.of(2).then(Unmade()), "no transform"),
        (Flow.of(2).publish_on(schedulers.thread("left")).then(Unmade()), "no transform"),
        (Flow.of(2).subscribe_on(schedulers.thread("left")).publish_on(Nowhere("attach")), "no place"),
        (Flow.of(2).publish_on(Nowhere("is_here")), "no idea"),
    ],
    ids=["stage", "stage behind a boundary", "attach", "is_here"],
)
@pytest.mark.parametrize("before", [Flow.of(1), Flow.of(1).publish_on(schedulers.current())], ids=["at once", "later"])
async def test_a_flow_that_can_not_be_assembled_is_a_source_that_fails(
    before: Flow[int], second: Flow[int], message: str
) -> None:
    there = set(threading.enumerate())
    flow = before.concat(second)

    with pytest.raises(OSError, match=message):
        await flow.to_list()
    assert [1, "recovered"] == await flow.retry(0).on_error_resume_next(Flow.of("recovered")).to_list()
    assert set(threading.enumerate()) <= there


async def test_1_09_a_flow_that_can_not_be_assembled_signals_that_to_its_subscriber() -> None:
    for flow in (Flow.of(1).then(Unmade()), Flow.of(1).publish_on(Nowhere("attach"))):
        subscriber = Recorder(1)
        flow.subscribe(subscriber)
        await idle()

        assert ["subscribe", "error"] == subscriber.kinds


async def test_the_failures_of_two_attempts_are_not_taken_for_consequences_of_each_other() -> None:
    failures: list[OSError] = []

    def fail(_: object) -> None:
        failures.append(OSError(len(failures)))
        raise failures[-1]

    # The first failure comes in a turn of the loop, not while the combinator is opened.
    source: Flow[object] = Flow.of(1).publish_on(schedulers.current()).map(fail)
    with pytest.raises(OSError, match="3"):
        await source.retry(3).to_list()

    assert 4 == len(failures)
    assert [None] * 4 == [failure.__context__ for failure in failures]


# -- request and cancel from every signal


class Reacting(Recorder):
    """Requests or cancels from inside signals."""

    def __init__(self, react: Callable[[Subscription], None], *kinds: str) -> None:
        super().__init__(1)
        self.react = react
        self.reacting_to = kinds

    def on_subscribe(self, subscription: Subscription) -> None:
        super().on_subscribe(subscription)
        self.after("subscribe")

    def on_next(self, item: Any) -> None:
        super().on_next(item)
        self.after("next")

    def on_error(self, error: BaseException) -> None:
        super().on_error(error)
        self.after("error")

    def on_complete(self) -> None:
        super().on_complete()
        self.after("complete")

    def after(self, kind: str) -> None:
        assert self.subscription is not None
        if kind in self.reacting_to:
            self.react(self.subscription)


KINDS = ("subscribe", "next", "error", "complete")


@combinators(ALL)
async def test_request_from_every_signal_gives_every_element_in_order(combine: Combine) -> None:
    source = (
        Flow.of(1, 2).concat(Flow.error(lambda: OSError("down"))) if combine in RECOVERING.values() else Flow.of(1, 2)
    )
    subscriber = Reacting(lambda subscription: subscription.request(1), *KINDS)
    combine(source).subscribe(subscriber)
    await subscriber.over.wait()
    await idle()

    runs = 1 if combine in PASSING.values() else 2
    assert [1, 2] * runs == subscriber.items
    assert 2 * runs + 2 == len(subscriber.signals)


@pytest.mark.parametrize("kind", KINDS)
@combinators(ALL)
@pytest.mark.usefixtures("still")
async def test_cancel_from_any_signal_is_the_last_thing_that_happens(combine: Combine, kind: str) -> None:
    failing = combine in RECOVERING.values()
    publisher = Sessions(gives(1, error=OSError("down")) if failing else gives(1))
    subscriber = Reacting(lambda subscription: subscription.cancel(), kind)
    subscriber.first = UNBOUNDED
    with hooks.using(on_error_dropped=nothing):
        combine(Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()

    runs = 1 if combine in PASSING.values() else 2
    whole = ["subscribe", *["next"] * runs, "error" if failing else "complete"]
    expected = whole[: whole.index(kind) + 1] if kind in whole else whole
    assert expected == subscriber.kinds
    assert {"subscribe": 0, "next": 1}.get(kind, runs) == len(publisher.all)


# -- threads


@combinators(COMPLETING | PASSING)
async def test_what_follows_sources_on_a_thread_runs_there_too(combine: Combine) -> None:
    made_on: set[str] = set()
    heard_on: set[str] = set()

    def make(n: int) -> int:
        made_on.add(threading.current_thread().name)
        return n

    flow = combine(Flow.range(1000).publish_on(schedulers.thread("source"), prefetch=16).map(make))
    count = await flow.map(lambda n: heard_on.add(threading.current_thread().name)).count()

    assert 1000 * (1 if combine in PASSING.values() else 2) == count
    assert {"source"} == made_on
    # A flow that a function makes belongs where the function runs, and what follows it with it.
    assert {threading.current_thread().name if combine in PASSING.values() else "source"} == heard_on


@combinators(RECOVERING)
async def test_a_failure_on_a_thread_is_recovered_from_and_leaves_no_thread(combine: Combine) -> None:
    before = set(threading.enumerate())
    failures = iter([False, False, True, False, False, False, False])

    def check(n: int) -> int:
        if next(failures):
            raise OSError(n)
        return n

    flow = Flow.range(4).subscribe_on(schedulers.thread("source")).map(check).publish_on(schedulers.thread("other"))

    assert [0, 1, 0, 1, 2, 3] == await combine(flow).to_list()
    assert set(threading.enumerate()) <= before


async def test_cancel_while_a_thread_is_at_work_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    flow = Flow.range(10**9).subscribe_on(schedulers.thread("source")).repeat()

    assert [0, 1, 2] == await flow.take(3).to_list()
    assert set(threading.enumerate()) <= before


@combinators(ALL)
async def test_a_publisher_may_signal_on_a_thread_of_its_own(combine: Combine) -> None:
    class Threaded(Sessions):
        def subscribe(self, subscriber: Any) -> None:
            threads.append(threading.Thread(target=super().subscribe, args=(subscriber,)))
            threads[-1].start()

    threads: list[threading.Thread] = []
    failing = combine in RECOVERING.values()

    def give(session: Any) -> None:
        thread = threading.Thread(target=gives(1, 2, error=OSError("down") if failing else None), args=(session,))
        threads.append(thread)
        thread.start()

    subscriber = Recorder(UNBOUNDED)
    combine(Flow.from_publisher(Threaded(give))).subscribe(subscriber)
    await asyncio.wait_for(subscriber.over.wait(), 30)
    for thread in threads:
        thread.join()

    assert [1, 2] * (1 if combine in PASSING.values() else 2) == subscriber.items
    assert ("error" if failing else "complete") == subscriber.kinds[-1]


def nested(depth: int) -> Flow[Any]:
    """A flow that never ends, read by combinators in each other, over boundaries of its own."""
    here = schedulers.current()
    flow: Flow[Any] = Flow.never().publish_on(schedulers.thread("inner")).publish_on(here)
    for _ in range(depth):
        flow = flow.map(str).publish_on(here).concat(Flow.of(1))
    return flow


def join(name: str) -> None:
    """See the end of a thread; nobody else could wait for it where the loop that it belonged to is no more."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join()


@pytest.mark.parametrize("depth", [1, 30])
async def test_combinators_on_a_thread_end_when_it_is_closed(depth: int) -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        async with schedulers.thread("outer") as outer:
            waiting = asyncio.create_task(nested(depth).subscribe_on(outer).to_list())
            await idle()
    with pytest.raises(SchedulerClosedError):
        await waiting

    assert [] == dropped
    join("inner")


@pytest.mark.parametrize("end", ["stops", "is closed"])
async def test_combinators_on_a_loop_end_when_it_does(end: str) -> None:
    loop, dropped = asyncio.new_event_loop(), list[BaseException]()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with hooks.using(on_error_dropped=dropped.append):
        waiting = asyncio.create_task(nested(3).subscribe_on(schedulers.loop(loop)).to_list())
        await idle()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    if end == "is closed":
        loop.close()
    with pytest.raises(SchedulerClosedError):
        await waiting
    loop.close()

    # A callback that is posted to a closed loop may report that the loop is closed, and nothing else.
    assert [] == [error for error in dropped if not isinstance(error, SchedulerClosedError)]
    join("inner")
