"""An exception arrives as itself, whatever its class lets be said beside it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from reactive_aio import Backoff, Flow
from reactive_aio._core.notes import add_note, notes_of, set_cause, set_context, set_notes


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """An exception whose attributes can't be set, not even a note."""

    code: int = 7


class OddError(Exception):
    """Its notes are of a type that Python's own ``add_note`` refuses."""

    __notes__: Any = 7


class RefusedError(BaseException):
    """Some classes raise such an error when a note is added."""


class ReadOnlyError(Exception):
    """Whose notes can be read and not set, as those of an exception of Java."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        return []


class UnreadableError(Exception):
    """Whose notes can't even be read."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise RefusedError


class SlottedError(Exception):
    """Whose notes have a place of their own, which is empty at first."""

    __slots__ = ("__notes__",)


class StubbornError(Exception):
    """Which lets nothing be set."""

    def __setattr__(self, name: str, value: object) -> None:
        raise RefusedError


class ClosedError(Exception):
    """Which lets nothing be read or set."""

    def __getattribute__(self, name: str) -> Any:
        raise RefusedError

    def __setattr__(self, name: str, value: object) -> None:
        raise RefusedError


class TracelessError(Exception):
    """Which takes no traceback."""

    def with_traceback(self, tb: object) -> Any:
        raise RefusedError


async def test_one_that_takes_no_traceback_arrives() -> None:
    with pytest.raises(TracelessError):
        await asyncio.wait_for(Flow.error(TracelessError()).retry(1).to_list(), 60)


ODD = [FrozenError, OddError, ReadOnlyError, UnreadableError, SlottedError, StubbornError, ClosedError]


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
    "retry by a Backoff": lambda: Flow.of(1).map(raising).retry(Backoff(0.0, max_retries=1)),
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


# -- whatever the class


@pytest.mark.parametrize("kind", ODD)
def test_nothing_that_is_said_beside_an_exception_raises(kind: type[Exception]) -> None:
    error = kind()
    add_note(error, "here")
    set_notes(error, ["there"])
    set_cause(error, ValueError())
    set_context(error, ValueError())

    assert notes_of(error) in (["there"], [])


@pytest.mark.parametrize("kind", [FrozenError, SlottedError, StubbornError])
def test_a_note_is_put_where_python_would_not_but_could(kind: type[Exception]) -> None:
    error = kind()
    add_note(error, "here")

    assert ["here"] == notes_of(error)


@pytest.mark.parametrize("kind", ODD[:-1])
@pytest.mark.parametrize("operator", ["map", "filter", "flat_map", "group_by", "on_error_map", "retry_if"])
async def test_whatever_its_class_refuses_it_arrives(operator: str, kind: type[Exception]) -> None:
    def fails(*_: object) -> Any:
        raise kind

    source = Flow.error(ValueError()) if operator in ("on_error_map", "retry_if") else Flow.of(1)
    with pytest.raises(kind):
        await asyncio.wait_for(getattr(source, operator)(fails).to_list(), 60)


def test_a_note_that_can_not_be_shown_hides_no_other() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RefusedError

    error = ValueError()
    error.__notes__ = [Mute(), "here"]  # type: ignore[list-item]
    add_note(error, "there")

    assert ["<note str() failed>", "here", "there"] == notes_of(error)


# -- what led to it


def chain_of(error: BaseException) -> list[BaseException]:
    """Return an exception and all that led to it, by causes and contexts; a circle would have no end."""
    chain, ahead = list[BaseException](), [error]
    while ahead:
        each = ahead.pop()
        assert len(chain) < 9, "it leads round in a circle"
        chain.append(each)
        ahead += [before for before in (each.__cause__, each.__context__) if before is not None]
    return chain


def outer_of(inner: BaseException) -> BaseException:
    """Raise one error while another is handled, or for that reason."""
    try:
        try:
            raise inner
        except OSError:
            raise KeyError("outer")  # noqa: B904 - this is the context, not the cause
    except KeyError as outer:
        return outer


def caused_by(inner: BaseException) -> BaseException:
    outer = KeyError("outer")
    outer.__cause__ = inner
    return outer


def context_of(error: BaseException) -> Any:
    return error.__context__


def cause_of(error: BaseException) -> Any:
    return error.__cause__


UNWRAPPING: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "on_error_resume_next, the context": lambda flow: flow.on_error_resume_next(lambda e: Flow.error(context_of(e))),
    "on_error_resume_next, the cause": lambda flow: flow.on_error_resume_next(lambda e: Flow.error(cause_of(e))),
    "on_error_map, the context": lambda flow: flow.on_error_map(context_of),
    "on_error_map, the cause": lambda flow: flow.on_error_map(cause_of),
}


@pytest.mark.parametrize("way", UNWRAPPING)
async def test_an_error_that_is_unwrapped_does_not_lead_to_itself(way: str) -> None:
    inner = OSError("inner")
    outer = outer_of(inner) if way.endswith("context") else caused_by(inner)

    with pytest.raises(OSError, match="inner") as failed:
        await UNWRAPPING[way](Flow.error(outer)).to_list()

    assert [inner] == chain_of(failed.value)
    assert inner in (outer.__context__, outer.__cause__), "nor is anything taken from the one around it"


@pytest.mark.parametrize("say", [set_cause, set_context])
def test_what_was_said_first_stands(say: Callable[[BaseException, BaseException], None]) -> None:
    error, first, second = ValueError(), OSError("first"), OSError("second")
    say(error, first)
    say(error, second)
    say(first, error)
    say(second, second)

    assert [error, first] == chain_of(error)
    assert [second] == chain_of(second)


def test_a_circle_that_somebody_has_made_is_left_as_it_is() -> None:
    one, other, error = ValueError("one"), ValueError("other"), ValueError("error")
    one.__cause__, other.__cause__ = other, one
    set_cause(error, one)

    assert error.__cause__ is one
