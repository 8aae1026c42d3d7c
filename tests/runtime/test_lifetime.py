"""The lifetime of a subscription, by itself: what waits for its end, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from reactive_aio._runtime.lifetime import Lifetime
from reactive_aio.hooks import also
from tests.subscribers import idle


def joining(name: str, joined: list[str]) -> Callable[[], None]:
    return lambda: joined.append(name)


async def test_what_holds_nothing_has_ended() -> None:
    await Lifetime().ended()


async def test_the_end_waits_for_every_hold() -> None:
    lifetime = Lifetime()
    first, second = lifetime.hold(), lifetime.hold()
    waiting = asyncio.ensure_future(lifetime.ended())
    first()
    await idle()
    assert not waiting.done()

    second()
    await waiting


async def test_a_cancellation_is_put_off_until_the_end_and_raised_then() -> None:
    lifetime = Lifetime()
    release = lifetime.hold()
    waiting = asyncio.ensure_future(lifetime.ended())
    for _ in range(2):
        await idle()
        waiting.cancel()
    await idle()
    assert not waiting.done()

    release()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_waiter_that_is_cancelled_in_each_turn_takes_one_place() -> None:
    lifetime = Lifetime()
    release = lifetime.hold()
    waiting = asyncio.ensure_future(lifetime.ended())
    for _ in range(100):  # as a cancel scope of anyio does, until the cleanup is done
        await idle()
        waiting.cancel()
    await idle()
    places = len(lifetime._waiting)

    release()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert places == 1


async def test_an_end_on_another_thread_is_not_missed_in_the_moment_of_a_cancel() -> None:
    lifetime = Lifetime()
    release = lifetime.hold()
    waiting = asyncio.ensure_future(lifetime.ended())
    await idle()

    waiting.cancel()
    await asyncio.to_thread(release)
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_call_waits_for_the_end_and_comes_once() -> None:
    lifetime = Lifetime()
    calls: list[str] = []
    lifetime.then(lambda: calls.append("nothing held"))
    assert calls == ["nothing held"]

    first, second = lifetime.hold(), lifetime.hold()
    lifetime.then(lambda: calls.append("all let go"))
    first()
    assert calls == ["nothing held"]

    second()
    lifetime.hold()()
    assert calls == ["nothing held", "all let go"]


async def test_each_thread_joins_the_one_before_and_the_waiter_the_last() -> None:
    lifetime = Lifetime()
    joined: list[str] = []
    releases = [lifetime.hold() for _ in range(3)]
    for name, release in zip(("first", "second", "third"), releases, strict=True):
        release(joining(name, joined))
    assert joined == ["first", "second"]

    await lifetime.ended()
    assert joined == ["first", "second", "third"]


async def test_the_waiter_for_the_whole_joins_the_threads_of_its_parts() -> None:
    lifetime = Lifetime()
    joined: list[str] = []
    part = lifetime.part()
    part.hold()(joining("of a part", joined))
    part.part().hold()(joining("of a part of it", joined))

    await part.ended()
    assert joined == ["of a part"]

    await lifetime.ended()
    assert joined == ["of a part", "of a part of it"]


async def test_a_part_ends_by_itself() -> None:
    lifetime = Lifetime()
    release = lifetime.hold()
    calls: list[str] = []
    part = lifetime.part()
    own = part.hold()
    part.then(lambda: calls.append("part"))
    lifetime.then(lambda: calls.append("whole"))

    own()
    assert calls == ["part"]

    release()
    assert calls == ["part", "whole"]


async def test_a_thread_is_joined_though_something_else_has_ended_last() -> None:
    lifetime = Lifetime()
    joined: list[str] = []
    thread, task = lifetime.hold(), lifetime.hold()
    thread(joining("the thread", joined))
    task()
    assert joined == []

    await lifetime.ended()
    assert joined == ["the thread"]


def test_a_failure_has_notes_of_others_and_not_of_itself() -> None:
    lifetime, error, other = Lifetime.awaited(), OSError("down"), OSError("up")
    for each in (other, error):  # as where both were reported before one of them came to the end
        lifetime.note(also(each))

    assert error is lifetime.outcome(error)
    assert [also(other)] == error.__notes__
