"""The edge towards subscribers of somebody else's, by itself: who has raised or ended hears no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import hooks
from reactive_aio._runtime.edges import SubscriberEdge
from tests.subscribers import ByHand, Recorder


@define
class Told:
    """The elements and errors that the hooks got."""

    discarded: list[Any] = field(factory=list)
    dropped: list[BaseException] = field(factory=list)


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    with hooks.using(on_discard=told.discarded.append, on_error_dropped=told.dropped.append):
        yield told


class Raising(Recorder):
    """Raises from the signals that are named."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def signal(self, name: str) -> None:
        if name in self.names:
            raise KeyError(name)

    def on_next(self, item: Any) -> None:
        super().on_next(item)
        self.signal("on_next")

    def on_error(self, error: BaseException) -> None:
        super().on_error(error)
        self.signal("on_error")

    def on_complete(self) -> None:
        super().on_complete()
        self.signal("on_complete")


def edge(subscriber: Recorder) -> tuple[SubscriberEdge, ByHand]:
    edge, upstream = SubscriberEdge(subscriber, "the maker"), ByHand()
    edge.on_subscribe(upstream)
    return edge, upstream


async def test_signals_pass() -> None:
    subscriber = Recorder(request=3)
    passing, upstream = edge(subscriber)
    passing.on_chunk([1, 2])
    passing.on_complete()

    assert subscriber.signals == [("subscribe", None), ("next", 1), ("next", 2), ("complete", None)]
    assert (upstream.requests, upstream.cancels) == ([3], 0)


async def test_nothing_follows_the_end(told: Told) -> None:
    for end in (SubscriberEdge.on_complete, lambda passing: passing.on_error(KeyError("first"))):
        subscriber = Recorder()
        passing, _ = edge(subscriber)
        end(passing)
        passing.on_complete()
        passing.on_error(KeyError("late"))
        passing.on_chunk([1, 2])

        assert len(subscriber.kinds) == 2

    assert [str(error) for error in told.dropped] == ["'late'", "'late'"]
    assert told.discarded == [1, 2, 1, 2]


async def test_who_raises_from_an_element_has_cancelled_and_hears_no_more(told: Told) -> None:
    subscriber = Raising("on_next")
    passing, upstream = edge(subscriber)
    passing.on_chunk([1, 2, 3])
    passing.on_complete()

    assert subscriber.kinds == ["subscribe", "next"]
    assert upstream.cancels == 1
    assert told.discarded == [2, 3]
    (error,) = told.dropped
    assert "§2.13" in error.__notes__[0]


@pytest.mark.parametrize("name", ["on_error", "on_complete"])
async def test_what_the_end_raises_is_told_to_the_hook(told: Told, name: str) -> None:
    subscriber = Raising(name)
    passing, _ = edge(subscriber)
    if name == "on_error":
        passing.on_error(OSError("failed"))
    else:
        passing.on_complete()

    assert [str(error) for error in told.dropped] == [f"'{name}'"]
    assert len(subscriber.kinds) == 2


async def test_none_ends_the_stream_with_the_name_of_its_maker(told: Told) -> None:
    subscriber = Recorder()
    passing, upstream = edge(subscriber)
    passing.on_chunk([1, None, 2])
    passing.on_complete()

    assert subscriber.kinds == ["subscribe", "next", "error"]
    assert "It was made in the maker" in str(subscriber.error)
    assert upstream.cancels == 1
