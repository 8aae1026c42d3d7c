"""The common promises of flat_map, concat_map, concat_map_eager, switch_map and exhaust_map."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle

Apply = Callable[[Flow[Any], Callable[[Any], Any]], Flow[Any]]

OPERATORS: dict[str, Apply] = {
    "flat_map": Flow.flat_map,
    "concat_map": Flow.concat_map,
    "concat_map_eager": Flow.concat_map_eager,
    "switch_map": Flow.switch_map,
    "exhaust_map": Flow.exhaust_map,
}
operators = pytest.mark.parametrize("name", OPERATORS)


@operators
async def test_the_elements_of_a_flow_come_in_their_order(name: str) -> None:
    assert [*range(100)] == await OPERATORS[name](Flow.of(100), Flow.range).to_list()


@operators
async def test_it_completes_without_demand_when_there_is_nothing_to_come(name: str) -> None:
    subscriber = Recorder()
    OPERATORS[name](Flow.empty(), Flow.of).subscribe(subscriber)
    await idle()

    assert ["subscribe", "complete"] == subscriber.kinds


@operators
async def test_it_completes_with_its_last_element_without_further_demand(name: str) -> None:
    subscriber = Recorder(2)
    OPERATORS[name](Flow.of(2), Flow.range).subscribe(subscriber)
    await idle()

    assert ["subscribe", "next", "next", "complete"] == subscriber.kinds


@operators
async def test_no_more_comes_than_is_requested(name: str) -> None:
    subscriber = Recorder()
    OPERATORS[name](Flow.of(10), Flow.range).subscribe(subscriber)
    for wanted in range(1, 11):
        subscriber.request(1)
        await idle()
        assert [*range(wanted)] == subscriber.items


# -- the function


@operators
async def test_a_failure_of_the_function_says_where_it_was_and_on_which_element(name: str) -> None:
    def fail(n: int) -> Flow[int]:
        return Flow.empty() if n < 2 else Flow.of(1 // 0)

    flow = OPERATORS[name](Flow.of(0, 1, 2), fail)
    with pytest.raises(ZeroDivisionError) as raised:
        await flow.to_list()

    (note,) = raised.value.__notes__
    assert note.startswith(f"in {name}(fail")
    assert __file__ in note
    assert note.endswith("on element #2")


@operators
async def test_the_failure_of_a_flow_says_which_element_it_was_made_of(name: str) -> None:
    def page(n: int) -> Flow[int]:
        return Flow.empty() if n < 2 else Flow.of(n).map(lambda n: 1 // 0)

    with pytest.raises(ZeroDivisionError) as raised:
        await OPERATORS[name](Flow.of(0, 1, 2), page).to_list()

    inner, outer = raised.value.__notes__
    assert "on element #0 of of(2)" in inner
    assert outer.startswith(f"in the flow that {name}(page")
    assert __file__ in outer
    assert outer.endswith(", made of element #2")


@operators
async def test_the_failure_of_the_outer_flow_is_laid_to_no_element(name: str) -> None:
    with pytest.raises(OSError, match="down") as raised:
        await OPERATORS[name](Flow.of(1).concat(Flow.error(OSError("down"))), Flow.of).to_list()

    assert not any("made of" in note for note in raised.value.__notes__)


def test_exhaust_map_counts_the_elements_that_it_leaves_out() -> None:
    def page(n: int) -> Flow[int]:
        return Flow.timer(1.5).map(lambda _: 1 // (2 - n))

    with pytest.raises(ZeroDivisionError) as raised:
        run_virtual(Flow.interval(1.0).exhaust_map(page).to_list())
    assert raised.value.__notes__[-1].endswith(", made of element #2")


@operators
async def test_a_function_that_returns_no_flow_is_told_what_takes_it(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"{name}\(\) takes a function that returns a flow, not list\. Use flat_map_itera"
    ):
        await OPERATORS[name](Flow.of(1), lambda n: [n]).to_list()


@operators
async def test_a_function_that_returns_an_async_iterable_is_told_to_make_a_flow_of_it(name: str) -> None:
    async def numbers() -> AsyncGenerator[int]:
        yield 1

    advice = rf"{name}\(\) takes a function that returns a flow, not async_generator\. Make a flow of it with Flow\.from_async"
    with pytest.raises(TypeError, match=advice):
        await OPERATORS[name](Flow.of(1), lambda _: numbers()).to_list()


@operators
async def test_a_function_that_raises_stop_iteration_has_failed(name: str) -> None:
    with pytest.raises(RuntimeError, match=rf"the function of {name}\(\) raised StopIteration"):
        await OPERATORS[name](Flow.of(1), lambda _: next(iter(()))).to_list()


@operators
async def test_a_function_that_raises_cancelled_error_has_failed_and_nothing_is_cancelled(name: str) -> None:
    def cancelled(_: int) -> Flow[int]:
        raise asyncio.CancelledError

    subscriber = Recorder(1)
    OPERATORS[name](Flow.of(1), cancelled).subscribe(subscriber)
    await idle()

    assert "SourceCancelledError" == type(subscriber.error).__name__


@operators
async def test_the_function_runs_in_the_context_of_the_subscriber(name: str) -> None:
    place: ContextVar[str] = ContextVar("place")
    place.set("here")
    flow = OPERATORS[name](Flow.of(1).publish_on(schedulers.thread("before")), lambda _: Flow.of(place.get()))

    assert ["here"] == await flow.to_list()


@operators
def test_an_async_function_is_refused_when_the_flow_is_built(name: str) -> None:
    async def fetch(n: int) -> Flow[int]:
        return Flow.of(n)

    with pytest.raises(
        TypeError, match=rf"{name}\(\) takes an ordinary function, but .*fetch is async def: .*map_async"
    ):
        OPERATORS[name](Flow.of(1), fetch)


@operators
def test_an_argument_that_is_no_function_is_refused_when_the_flow_is_built(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\) takes a function, not Flow"):
        OPERATORS[name](Flow.of(1), Flow.of(1))


@pytest.mark.parametrize("name", ["flat_map", "concat_map_eager"])
@pytest.mark.parametrize("argument", ["max_concurrency", "prefetch"])
@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (2.0, TypeError)])
def test_a_bound_that_is_no_count_is_refused_when_the_flow_is_built(
    name: str, argument: str, number: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"{name}\({argument}="):
        getattr(Flow.of(1), name)(Flow.of, **{argument: number})


@operators
def test_the_plan_shows_the_flow_whose_elements_are_mapped(name: str) -> None:
    shown = OPERATORS[name](Flow.of(1).map(str), Flow.of).map(len).describe()

    assert f"{name}(of" in shown
    assert f"where {name} reads:" in shown


# -- ends


@operators
async def test_a_failure_of_an_inner_flow_ends_the_whole_and_the_outer_one_is_cancelled(name: str) -> None:
    outer, subscriber = Sessions(), Recorder(UNBOUNDED)
    OPERATORS[name](Flow.from_publisher(outer), lambda _: Flow.error(OSError("down"))).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()

    assert "down" == str(subscriber.error)
    assert 1 == outer.last.cancels


@operators
async def test_cancel_reaches_the_outer_flow_and_the_inner_one(name: str) -> None:
    outer, inner, subscriber = Sessions(), Sessions(), Recorder(UNBOUNDED)
    OPERATORS[name](Flow.from_publisher(outer), lambda _: Flow.from_publisher(inner)).subscribe(subscriber)
    await idle()
    outer.last.next(1)
    await idle()
    inner.last.next("taken")
    subscriber.cancel()
    await idle()

    assert [1, 1] == [outer.last.cancels, inner.last.cancels]


@operators
@pytest.mark.parametrize("length", [1, 9])
async def test_every_element_taken_is_emitted_or_told_to_the_hook(name: str, length: int) -> None:
    made, discarded = list[int](), list[object]()

    def inner(n: int) -> Flow[int]:
        return Flow.range(n, n + length).map(lambda item: made.append(item) or item)

    for turns in range(30):
        made.clear()
        discarded.clear()
        subscriber = Recorder(5)
        with hooks.using(on_discard=discarded.append):
            OPERATORS[name](Flow.range(0, 100, 10).map(lambda n: n + 1000), inner).subscribe(subscriber)
        await idle(turns)
        subscriber.cancel()
        await idle()
        emitted = [item for item in [*subscriber.items, *discarded] if item in made]
        assert sorted(emitted) == sorted(made)


@operators
@pytest.mark.parametrize("demand", [1, UNBOUNDED])
async def test_an_element_whose_function_cancels_is_told_to_the_hook(name: str, demand: int) -> None:
    subscriber, made, discarded = Recorder(demand), list[int](), list[object]()

    def cancel(item: int) -> int:
        if item == 2:
            subscriber.cancel()
        made.append(item + 1000)
        return item + 1000

    with hooks.using(on_discard=discarded.append):
        OPERATORS[name](Flow.of(1, 2, 3), lambda n: Flow.of(n).map(cancel)).subscribe(subscriber)
    await idle()
    subscriber.request(1)
    await idle()

    assert sorted(made) == sorted(item for item in [*subscriber.items, *discarded] if item in made)


@operators
async def test_a_nest_is_as_deep_as_one_likes(name: str) -> None:
    flow: Flow[int] = Flow.of(0)
    for _ in range(150):
        flow = OPERATORS[name](flow, lambda n: Flow.of(n + 1))

    assert [150] == await flow.to_list()


@operators
async def test_a_flow_may_be_defined_by_itself(name: str) -> None:
    def down(n: int) -> Flow[int]:
        return OPERATORS[name](Flow.of(n - 1), down) if n else Flow.of(0)

    assert [0] == await down(100).to_list()


@operators
async def test_flows_on_other_threads_come_home(name: str) -> None:
    def inner(n: int) -> Flow[int]:
        return Flow.range(n).subscribe_on(schedulers.thread("inner"))

    outer = Flow.of(3).subscribe_on(schedulers.thread("outer"))

    assert [0, 1, 2] == await OPERATORS[name](outer, inner).to_list()
