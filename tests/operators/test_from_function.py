"""from_iterable and from_async_iterable with a function, which makes the iterable for each subscription."""

from __future__ import annotations

import contextvars
import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from reactive_aio import Flow, SourceConsumedError
from tests.subscribers import Recorder, idle


def numbers() -> Iterator[int]:
    yield from (1, 2)


async def later() -> AsyncIterator[int]:
    for n in numbers():
        yield n


class Ticks:
    """A class whose objects are async iterables."""

    def __aiter__(self) -> AsyncIterator[int]:
        return later()


class Colour(enum.Enum):
    """A class that is iterable itself."""

    RED = 1
    BLUE = 2


SOURCES: dict[str, Callable[[Any], Flow[Any]]] = {
    "from_iterable": Flow.from_iterable,
    "from_async_iterable": Flow.from_async_iterable,
}
WORKING = [
    ("from_iterable", numbers),
    ("from_iterable", lambda: [1, 2]),
    ("from_iterable", functools.partial(iter, (1, 2))),
    ("from_async_iterable", later),
    ("from_async_iterable", functools.partial(later)),
    ("from_async_iterable", Ticks),
    ("from_async_iterable", Ticks().__aiter__),
]


@pytest.mark.parametrize(("source", "make"), WORKING)
async def test_a_function_is_called_for_each_subscription(source: str, make: Any) -> None:
    flow = SOURCES[source](make)

    assert [1, 2] == await flow.to_list() == await flow.to_list()
    assert [1, 2, 1, 2] == await flow.concat(flow).to_list()


@pytest.mark.parametrize(("source", "make"), [("from_iterable", numbers), ("from_async_iterable", later)])
async def test_it_is_called_when_the_first_element_is_wanted(source: str, make: Callable[[], Any]) -> None:
    calls: list[int] = []

    def made() -> Any:
        calls.append(1)
        return make()

    recorder = Recorder(0)
    SOURCES[source](made).subscribe(recorder)
    await idle()
    assert [] == calls

    recorder.request(1)
    await idle()
    assert ([1], [1]) == (calls, recorder.items)
    recorder.cancel()
    await idle()


@pytest.mark.parametrize(("source", "make"), [("from_iterable", numbers), ("from_async_iterable", later)])
async def test_it_is_called_in_the_context_of_the_subscriber(source: str, make: Callable[[], Any]) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")
    seen: list[str] = []

    def made() -> Any:
        seen.append(name.get())
        name.set("leaked")
        return make()

    flow = SOURCES[source](made)
    name.set("subscriber")
    await flow.to_list()

    assert ["subscriber"] == seen
    assert "subscriber" == name.get()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("error", [OSError, SystemExit, KeyboardInterrupt])
async def test_its_exception_ends_the_flow(source: str, error: type[BaseException]) -> None:
    def broken() -> Any:
        raise error("broken")

    with pytest.raises(error, match="broken"):
        await SOURCES[source](broken).to_list()


@pytest.mark.parametrize(
    ("source", "made", "told"),
    [
        ("from_iterable", 3, "make must return an iterable, but returned 3"),
        ("from_iterable", Ticks(), "Flow.from_async_iterable"),
        ("from_async_iterable", 3, "make must return an async iterable, but returned 3"),
        ("from_async_iterable", [1], "Flow.from_iterable"),
    ],
)
async def test_a_function_that_makes_no_iterable_is_an_error_that_names_it(source: str, made: Any, told: str) -> None:
    def make() -> Any:
        return made

    with pytest.raises(TypeError, match=told) as failed:
        await SOURCES[source](make).to_list()

    whole = "".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert f"{source}(make), chained at {__file__}" in whole


async def test_what_is_made_is_closed_when_the_flow_is_left() -> None:
    closed: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            closed.append("plain")

    async def async_items() -> AsyncIterator[int]:
        try:
            for n in range(9):
                yield n
        finally:
            closed.append("async")

    await Flow.from_iterable(items).take(1).to_list()
    await Flow.from_async_iterable(async_items).take(1).to_list()

    assert ["plain", "async"] == closed


async def test_what_is_iterable_is_not_called() -> None:
    assert [Colour.RED, Colour.BLUE] == await Flow.from_iterable(Colour).to_list()


async def test_a_class_that_is_not_iterable_is_called() -> None:
    assert [] == await Flow.from_iterable(list).to_list()


@pytest.mark.parametrize(("source", "made"), [("from_iterable", numbers), ("from_async_iterable", later)])
async def test_who_reads_an_iterator_twice_is_told_of_functions(source: str, made: Callable[[], Any]) -> None:
    flow = SOURCES[source](made())
    await flow.to_list()

    with pytest.raises(SourceConsumedError, match=rf"Pass {source}\(\) .*a function"):
        await flow.to_list()


async def coroutine() -> list[int]:
    return []


@pytest.mark.parametrize(
    ("source", "wrong", "told"),
    [
        ("from_iterable", 3, "iterable or a function, not int"),
        ("from_iterable", Ticks(), "Use Flow.from_async_iterable"),
        ("from_iterable", later, "later is async: use Flow.from_async_iterable"),
        ("from_iterable", coroutine, "async def"),
        ("from_async_iterable", 3, "async iterable or a function, not int"),
        ("from_async_iterable", [1], "not list. Use Flow.from_iterable"),
        ("from_async_iterable", coroutine, "async def"),
    ],
)
def test_what_makes_no_elements_is_refused_when_the_flow_is_built(source: str, wrong: Any, told: str) -> None:
    with pytest.raises(TypeError, match=rf"{source}\(\).*{told}"):
        SOURCES[source](wrong)
