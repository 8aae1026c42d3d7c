"""An exception arrives as itself, whatever its class lets be said beside it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from reactive_aio import Flow
from reactive_aio.notes import add_note, notes_of


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Of which nothing can be set, not even a note."""

    code: int = 7


class OddError(Exception):
    """What Python's own ``add_note`` does not take for notes."""

    __notes__: Any = 7


def raising(*_: Any) -> Any:
    raise FrozenError


async def raising_later(*_: Any) -> Any:
    raise FrozenError


@contextmanager
def failing() -> Generator[int]:
    yield 1
    raise FrozenError


FAILING: dict[str, Callable[[], Flow[Any]]] = {
    "map": lambda: Flow.of(1).map(raising),
    "two_regions": lambda: Flow.of(1).map(raising).merge(Flow.of(2)),
    "map_async": lambda: Flow.of(1).map_async(raising_later),
    "flat_map": lambda: Flow.of(1).flat_map(raising),
    "group_by": lambda: Flow.of(1).group_by(raising),
    "using": lambda: Flow.using(failing, Flow.of),
    "from_awaitable": lambda: Flow.from_awaitable(raising_later),
    "from_callable": lambda: Flow.from_callable(raising),
    "checkpoint": lambda: Flow.error(FrozenError()).checkpoint("here"),
    "retry": lambda: Flow.of(1).map(raising).retry(1),
    "retry_backoff": lambda: Flow.of(1).map(raising).retry_backoff(1, 0.0),
    "retry_when": lambda: Flow.error(ValueError()).retry_when(raising_later),
    "retry_if": lambda: Flow.error(ValueError()).retry_if(raising),
    "on_error_map": lambda: Flow.error(ValueError()).on_error_map(lambda _: FrozenError()),
    "on_error_resume_next": lambda: Flow.error(ValueError()).on_error_resume_next(Flow.error(FrozenError())),
    "do_on_error": lambda: Flow.error(ValueError()).do_on_error(raising),
}


@pytest.mark.parametrize("name", FAILING)
async def test_one_of_which_nothing_can_be_set_arrives_with_its_note(name: str) -> None:
    with pytest.raises(FrozenError) as failed:
        await asyncio.wait_for(FAILING[name]().take(5).to_list(), 60)

    assert isinstance(failed.value, FrozenError)


async def test_its_note_tells_the_operator() -> None:
    with pytest.raises(FrozenError) as failed:
        await Flow.of(1).map(raising).to_list()

    (note,) = notes_of(failed.value)
    assert note.startswith("in map(raising), chained at ")


async def test_one_whose_notes_are_none_arrives() -> None:
    def odd(_: int) -> None:
        raise OddError

    with pytest.raises(OddError):
        await asyncio.wait_for(Flow.of(1).map(odd).to_list(), 60)


def test_a_note_is_said_once() -> None:
    error = ValueError()
    add_note(error, "here")
    add_note(error, "there")
    add_note(error, "here")

    assert ["here", "there"] == notes_of(error)
