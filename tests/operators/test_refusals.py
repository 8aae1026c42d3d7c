"""An operator refuses arguments that it can't use when the flow is built, and says what to do instead."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.extend import flow_of

AWAITING = {
    "map": "map_async",
    "flat_map": "map_async",
    "flat_map_iterable": "map_async",
    "do_on_next": "map_async",
    "filter": "filter_when",
    "retry_if": "retry_when",
}


@pytest.mark.parametrize(("method", "instead"), AWAITING.items())
def test_an_async_function_is_refused_with_the_operator_that_awaits(method: str, instead: str) -> None:
    async def later(*_: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=rf"{method}\(\) .*later is async def.*{instead}\(\)"):
        getattr(Flow.of(1), method)(later)


class Yielding:
    """Makes an async generator of whatever it is called with."""

    async def __call__(self, *given: object) -> AsyncIterator[object]:
        yield given


async def yielding(*given: object) -> AsyncIterator[object]:
    yield given


GENERATORS = [yielding, partial(yielding, 1), Yielding(), Yielding().__call__]


@pytest.mark.parametrize("method", [*AWAITING, "any", "group_by_key", "concat_map", "for_each", "for_each_batch"])
@pytest.mark.parametrize("fn", GENERATORS, ids=["function", "partial", "object", "method"])
async def test_an_async_generator_that_nothing_would_read_is_refused(method: str, fn: Any) -> None:
    more = [2] if method == "for_each_batch" else []

    with pytest.raises(TypeError, match=rf"{method}\(\) would not read the async generator .*leave out its yield"):
        await getattr(Flow.of(1), method)(fn, *more)


def test_a_source_takes_an_async_generator_and_no_other_async_def() -> None:
    async def later() -> Any:
        """Do nothing."""

    assert [()] == Flow.from_async_iterable(yielding).run_sync()
    with pytest.raises(TypeError, match="later is async def: yield the elements, or return the iterable from"):
        Flow.from_async_iterable(later)


async def test_an_async_generator_that_a_function_for_effects_returns_is_refused() -> None:
    with pytest.raises(TypeError, match="<lambda> returned an async generator, and nobody reads it: leave out"):
        await Flow.of(1).for_each(lambda _: yielding())
    with pytest.raises(TypeError, match="<lambda> returned an async generator"):
        await Flow.of(1).do_on_next(lambda _: yielding()).to_list()


def test_a_class_is_a_function_that_makes_instances_and_an_operator_may_be_an_async_generator() -> None:
    assert Yielding is type(Flow.from_callable(Yielding).run_sync()[0])
    assert isinstance(Flow.of(1).through(yielding), AsyncGenerator)


@pytest.mark.parametrize("arguments", [("1",), (1.5,), (0, 1.5), (0, 1, 0)])
def test_a_range_that_is_none_is_refused_by_name(arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Flow\.range\(\): "):
        Flow.range(*arguments)


def test_an_argument_that_is_no_error_is_refused() -> None:
    with pytest.raises(TypeError, match="an exception or a function that makes one, not str"):
        Flow.error("down")


@pytest.mark.parametrize("method", ["merge", "concat_eager", "zip", "race", "concat", "combine_latest"])
def test_a_flow_of_flows_is_shown_by_the_first_of_them(method: str) -> None:
    others = [Flow.of(n) for n in range(2, 9)]

    assert f"Flow.{method}(Flow.of(1), Flow.of(2), ...)" == repr(getattr(Flow.of(1), method)(*others))


COMBINING = ["merge", "concat", "concat_eager", "zip", "race", "combine_latest"]


@pytest.mark.parametrize("method", COMBINING)
@pytest.mark.parametrize("several", [list, tuple, set, iter], ids=["list", "tuple", "set", "iterator"])
def test_several_flows_in_one_argument_are_refused_with_how_to_write_it(method: str, several: Any) -> None:
    instead = rf"{method}\(\) takes flows, not .*: .*{method}\(\*flows\)"
    flows = [Flow.of(1), Flow.of(2)]

    with pytest.raises(TypeError, match=instead):
        getattr(Flow, method)(several(flows))
    with pytest.raises(TypeError, match=instead):
        getattr(Flow.of(0), method)(several(flows))


@pytest.mark.parametrize("method", [*COMBINING, "switch_if_empty", "with_latest_from"])
def test_an_argument_that_is_no_flow_is_refused_in_the_first_place_as_well(method: str) -> None:
    with pytest.raises(TypeError, match=rf"{method}\(\) takes flows, not int"):
        getattr(Flow, method)(3, Flow.of(1))
    with pytest.raises(TypeError, match=rf"{method}\(\) takes flows, not list"):
        getattr(Flow, method)([3], Flow.of(1))


@pytest.mark.parametrize("elements", [[1], 3, "abc", None, Flow.of(1)])
def test_a_flow_that_is_made_of_elements_is_refused_with_how_to_write_it(elements: Any) -> None:
    with pytest.raises(
        TypeError, match=r"Flow\(\.\.\.\) can't be made of .*Write Flow\.of\(1, 2\), Flow\.from_iterable\("
    ):
        Flow(elements)


@pytest.mark.parametrize("elements", [[1], None, Flow.of(1)])
def test_an_argument_that_is_no_source_is_refused(elements: Any) -> None:
    with pytest.raises(TypeError, match=r"flow_of\(\) takes a source, not .*from_iterable\(\)"):
        flow_of(elements)
