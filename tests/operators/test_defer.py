"""defer: a flow made anew for each subscription."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


async def test_the_flow_is_made_once_for_each_subscription_and_not_before() -> None:
    made: list[int] = []

    def make() -> Flow[int]:
        made.append(len(made))
        return Flow.of(len(made))

    flow = Flow.defer(make)
    assert [] == made

    assert [1] == await flow.to_list()
    assert [2] == await flow.to_list()


async def test_the_flow_is_made_in_the_context_of_the_subscriber_and_changes_nothing_there() -> None:
    user = contextvars.ContextVar[str]("user")

    def make() -> Flow[str]:
        name = user.get()
        user.set("nobody")
        return Flow.of(name)

    flow = Flow.defer(make)
    for name in ("ann", "bob"):
        user.set(name)
        assert [name] == await flow.to_list()
        assert name == user.get()


async def test_a_function_that_fails_is_a_flow_that_fails() -> None:
    def make() -> Flow[int]:
        raise LookupError("nothing to make")

    subscriber = Recorder()
    Flow.defer(make).subscribe(subscriber)
    await subscriber.over.wait()

    assert ["subscribe", "error"] == subscriber.kinds
    assert "nothing to make" == str(subscriber.error)
    assert "defer(make)" in subscriber.error.__notes__[0]


async def test_a_function_that_returns_no_flow_fails_by_the_name_of_the_operator() -> None:
    make: Any = lambda: [1, 2]  # noqa: E731 - its type is the point

    with pytest.raises(TypeError, match=r"defer\(\) takes flows, not list"):
        await Flow.defer(make).to_list()


async def test_demand_passes_one_for_one() -> None:
    publisher, subscriber = Sessions(), Recorder(2)
    Flow.defer(lambda: Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    await idle()
    subscriber.request(3)
    await idle()

    assert [[2, 3]] == publisher.requests
    assert [1] == subscriber.items


async def test_cancel_reaches_the_flow_that_was_made() -> None:
    publisher, subscriber = Sessions(), Recorder(1)
    Flow.defer(lambda: Flow.from_publisher(publisher)).subscribe(subscriber)
    await idle()
    subscriber.cancel()
    await idle()

    assert 1 == publisher.last.cancels


async def test_the_failure_of_the_flow_that_was_made_comes_out() -> None:
    error = OSError("down")

    with pytest.raises(OSError, match="down") as failed:
        await Flow.defer(lambda: Flow.error(error)).to_list()

    assert failed.value is error


async def test_the_flow_that_was_made_may_be_on_another_thread() -> None:
    def make() -> Flow[int]:
        return Flow.of(1, 2).publish_on(schedulers.thread("made"))

    assert [1, 2] == await Flow.defer(make).to_list()


async def test_a_function_that_is_not_called_because_nothing_is_wanted() -> None:
    made: list[int] = []

    assert [] == await Flow.defer(lambda: made.append(1) or Flow.of(1)).take(0).to_list()
    assert [] == made


@pytest.mark.parametrize("factory", [None, Flow.of(1)])
def test_defer_refuses_what_is_no_function_when_it_is_built(factory: Any) -> None:
    with pytest.raises(TypeError, match="defer"):
        Flow.defer(factory)


def test_defer_refuses_a_coroutine_function_when_it_is_built() -> None:
    async def make() -> Flow[int]:
        return Flow.of(1)

    not_yet: Any = make
    with pytest.raises(TypeError, match="async def"):
        Flow.defer(not_yet)
