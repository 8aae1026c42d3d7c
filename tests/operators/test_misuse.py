"""A newcomer's mistake raises an error at once. The error says how to do it right."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.testing import adversarial, from_marbles, probe
from reactive_aio.web import Event


@pytest.mark.parametrize("flow", [Flow.range(3), Flow.range(3).share()], ids=["a flow", "a shared flow"])
async def test_a_context_manager_that_is_not_entered_is_no_iterator(flow: Flow[int]) -> None:
    opened: Any = flow.open()
    with pytest.raises(TypeError, match=r"async with flow\.open"):
        async for _ in opened:
            pass
    with pytest.raises(TypeError, match=r"async with flow\.open"):
        await anext(opened)


def test_an_end_that_returns_no_awaitable_is_named() -> None:
    def end(flow: Flow[int]) -> Any:
        return flow.map(str)

    with pytest.raises(TypeError, match=r"takes a function that ends the flow.* but end returned Flow"):
        Flow.range(3).run_sync(end)


def test_a_flow_in_the_place_of_a_predicate_leads_to_the_operator_for_flows() -> None:
    other: Any = Flow.never()
    with pytest.raises(TypeError, match=r"takes a function, not Flow.*take_until_other"):
        Flow.range(3).take_until(other)


def test_a_probe_is_of_a_publisher() -> None:
    items: Any = [1, 2]
    with pytest.raises(TypeError, match=r"takes a flow or another publisher, not list"):
        probe(items)


async def test_a_probe_requests_a_whole_number() -> None:
    number: Any = "a"
    async with probe(Flow.range(3)) as p:
        with pytest.raises(TypeError, match="n is a whole number"):
            await p.request(number)
        p.cancel()


def test_a_diagram_is_a_text_with_a_unit_of_time_and_an_exception() -> None:
    text: Any = 5
    error: Any = "boom"
    with pytest.raises(TypeError, match="a diagram is a str, not int"):
        from_marbles(text)
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        from_marbles("-a", unit=0)
    with pytest.raises(TypeError, match="takes an exception, not str"):
        from_marbles("-#", error=error)


def test_a_decorator_with_arguments_is_called_first() -> None:
    decorate: Any = adversarial
    with pytest.raises(TypeError, match="write @adversarial"):
        decorate(lambda: None)


@pytest.mark.parametrize("name", ["data", "event", "id"])
def test_the_fields_of_an_event_are_texts(name: str) -> None:
    wrong: Any = {name: 5}
    with pytest.raises(TypeError, match=rf"Event\({name}=...\) takes a str, not int"):
        Event(**wrong)


def test_pools_and_keyed_flows_are_shown_as_they_are_made() -> None:
    keyed = Flow.range(3).group_by_key(int).map(str)
    shown = [repr(each) for each in (schedulers.threads(2), schedulers.processes(3), keyed)]
    assert shown == ["threads(2)", "processes(3)", "Flow.range(0, 3).group_by_key(int -> map(str))"]
