"""retry: so many attempts after the first, each a subscription of its own."""

from __future__ import annotations

import asyncio
import gc
import traceback
import weakref
from collections.abc import AsyncIterator, Callable

import pytest

from reactive_aio import UNBOUNDED, Backoff, Flow, SourceConsumedError, hooks
from reactive_aio._fusion.run import MOST_FRAMES, _frames
from reactive_aio.testing import run_virtual
from tests.arbiter.sessions import Sessions
from tests.subscribers import Recorder, idle


def failing(times: int) -> Callable[[], Flow[str]]:
    """Fail so many times, and then go well."""
    attempts = iter(range(1, times + 2))

    def attempt() -> Flow[str]:
        n = next(attempts)
        return Flow.of(f"attempt {n}") if n > times else Flow.error(OSError(f"failure {n}"))

    return attempt


async def test_retry_makes_so_many_attempts_after_the_first() -> None:
    assert ["attempt 3"] == await Flow.defer(failing(2)).retry(2).to_list()


async def test_retry_gives_up_with_the_last_failure() -> None:
    with pytest.raises(OSError, match="failure 3"):
        await Flow.defer(failing(3)).retry(2).to_list()


async def test_the_failure_of_the_last_attempt_says_how_many_retries_there_were() -> None:
    for retries, said in ((0, []), (2, ["given up after 2 retries: retry("])):
        with pytest.raises(OSError, match="failure") as failed:
            await Flow.defer(failing(3)).retry(retries).to_list()
        notes = [note for note in getattr(failed.value, "__notes__", ()) if "given up" in note]
        assert said == [note.partition("Flow")[0] for note in notes]


async def test_a_number_of_retries_waits_for_nothing_and_an_element_resets_nothing() -> None:
    assert [1, 1, 1] == await Flow.of(1).concat(Flow.error(OSError())).retry(2).on_error_complete().to_list()


async def test_retry_goes_on_from_the_last_element_with_resume() -> None:
    def read(start: int) -> Flow[int]:
        return Flow.range(start, 5).map(lambda n: n if n < start + 2 else 1 // 0)

    assert [0, 1, 2, 3, 4] == await read(0).retry(3, resume=lambda last: read(last + 1)).to_list()


async def test_retry_zero_makes_one_attempt() -> None:
    with pytest.raises(OSError, match="failure 1"):
        await Flow.defer(failing(1)).retry(0).to_list()


async def test_retry_without_a_number_goes_on_until_it_goes_well() -> None:
    assert ["attempt 501"] == await Flow.defer(failing(500)).retry().to_list()


async def test_the_number_of_retries_holds_for_each_subscription() -> None:
    publisher = Sessions(lambda session: session.error(OSError("down")))
    flow = Flow.from_publisher(publisher).retry(2)

    for attempts in (3, 6):
        with pytest.raises(OSError, match="down"):
            await flow.to_list()
        assert attempts == len(publisher.all)


async def test_what_a_failed_attempt_has_emitted_stays_emitted() -> None:
    flow = Flow.of(1, 2).concat(Flow.error(OSError("down"))).retry(1)
    subscriber = Recorder(UNBOUNDED)

    flow.subscribe(subscriber)
    await subscriber.over.wait()

    assert [1, 2, 1, 2] == subscriber.items
    assert "down" == str(subscriber.error)


async def test_retry_does_not_touch_a_flow_that_completes() -> None:
    publisher = Sessions(lambda session: session.complete())

    assert [] == await Flow.from_publisher(publisher).retry().to_list()
    assert 1 == len(publisher.all)


async def test_the_failure_of_a_function_in_the_flow_is_retried_from_the_start() -> None:
    failures = iter([True, True, False])

    def check(n: int) -> int:
        if n == 2 and next(failures):
            raise ValueError(n)
        return n

    assert [1, 1, 1, 2, 3] == await Flow.of(1, 2, 3).map(check).retry(2).to_list()


async def test_an_attempt_is_asked_for_what_the_one_before_has_left_of_the_demand() -> None:
    publisher, subscriber = Sessions(), Recorder(4)
    Flow.from_publisher(publisher).retry().subscribe(subscriber)
    await idle()
    publisher.last.next(1)
    publisher.last.error(OSError())
    await idle()
    publisher.last.error(OSError())
    await idle()
    publisher.last.next(2, 3, 4)
    publisher.last.error(OSError())
    await idle()
    subscriber.request(7)
    await idle()

    assert [[4], [3], [3], [7]] == publisher.requests
    assert [1, 2, 3, 4] == subscriber.items


async def test_each_attempt_has_a_subscriber_of_its_own_and_a_failed_one_is_not_touched_again() -> None:
    publisher, subscriber = Sessions(), Recorder(1)
    Flow.from_publisher(publisher).retry(3).subscribe(subscriber)
    for _ in range(4):
        await idle()
        publisher.last.error(OSError())
    await idle()

    assert 4 == len({id(session.subscriber) for session in publisher.all})
    assert [0, 0, 0, 0] == [session.cancels for session in publisher.all]
    assert [[1], [1], [1], [1]] == publisher.requests
    assert ["subscribe", "error"] == subscriber.kinds


async def test_cancel_ends_the_current_attempt_and_no_other_begins() -> None:
    publisher, subscriber = Sessions(), Recorder(1)
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        Flow.from_publisher(publisher).retry().subscribe(subscriber)
    await idle()
    publisher.last.error(OSError("first"))
    await idle()
    subscriber.cancel()
    await idle()
    publisher.last.error(OSError("late"))
    await idle()

    assert [0, 1] == [session.cancels for session in publisher.all]
    assert ["subscribe"] == subscriber.kinds
    assert ["late"] == [str(error) for error in dropped]


async def test_an_endless_retry_of_a_failure_can_be_cancelled() -> None:
    waiting = asyncio.create_task(Flow.error(OSError("down")).retry().to_list())
    await idle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


FAILING: dict[str, Callable[[OSError], Flow[int]]] = {
    "one flow": Flow.error,
    "a flow for each attempt": lambda down: Flow.defer(lambda: Flow.error(down)),
    "an inner flow": lambda down: Flow.of(1).concat_map(lambda _: Flow.error(down)),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
async def test_an_error_that_fails_again_and_again_gathers_neither_notes_nor_traceback(
    failing: Callable[[OSError], Flow[int]],
) -> None:
    found: list[tuple[int, list[str]]] = []
    for retries in (0, 10):
        with pytest.raises(OSError, match="down") as failed:
            await failing(OSError("down")).retry(retries).to_list()
        found.append((len(failed.traceback), [note for note in failed.value.__notes__ if "given up" not in note]))

    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("retries", "refused"), [(-1, ValueError), (1.0, TypeError), ("2", TypeError), (True, TypeError)]
)
def test_retry_refuses_what_is_no_number_of_retries(retries: int, refused: type[Exception]) -> None:
    told = {ValueError: "at least 0", TypeError: r"Pass a number of retries, a Backoff\(...\) or None"}
    with pytest.raises(refused, match=told[refused]):
        Flow.of(1).retry(retries)


def test_a_source_that_can_be_read_once_is_not_tried_again_and_the_failure_is_the_context() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        raise ConnectionError("lost")

    with pytest.raises(SourceConsumedError) as failed:
        run_virtual(Flow.from_async_iterable(numbers()).retry(Backoff(1)).to_list())

    assert "lost" == str(failed.value.__context__)


class OnceError(OSError):
    """A failure that can be referred to weakly."""


async def test_a_failure_is_not_kept_behind_the_next_attempt() -> None:
    gone: list[weakref.ref[OnceError]] = []

    def attempt() -> Flow[int]:
        if gone:
            return Flow.of(1, 2)
        error = OnceError("once")
        gone.append(weakref.ref(error))
        return Flow.error(error)

    async with Flow.defer(attempt).retry(1).open() as items:
        assert 1 == await anext(items)
        gc.collect()
        assert gone[0]() is None


async def test_no_failure_is_looked_for_in_the_frames_of_all_attempts() -> None:
    constant = OSError("down")

    def fail() -> int:
        raise constant

    with pytest.raises(OSError, match="down"):
        await Flow.from_callable(fail).retry(MOST_FRAMES).to_list()

    assert len(list(traceback.walk_tb(constant.__traceback__))) > MOST_FRAMES
    assert len(list(_frames(constant.__traceback__))) == MOST_FRAMES
    assert [note for note in constant.__notes__ if note.startswith("in from_callable(")]


@pytest.mark.parametrize("goes_well", [True, False])
async def test_failed_attempts_leave_nothing_to_the_garbage_collector(goes_well: bool) -> None:
    def of(attempts: int) -> Flow[float]:
        left = iter(range(attempts if goes_well else attempts + 1))
        return (
            Flow.of(1).map(lambda n: n / 0 if next(left, None) is not None else n).retry(attempts).on_error_return(0.0)
        )

    async def left_by(attempts: int) -> int:
        await of(attempts).to_list()
        gc.collect()
        gc.disable()
        try:
            await of(attempts).to_list()
            return gc.collect()
        finally:
            gc.enable()

    assert await left_by(3) == await left_by(50)


async def test_an_iterator_that_is_left_is_closed_though_somebody_keeps_the_failure_of_an_attempt() -> None:
    kept, open_ones = ValueError("again"), 0

    async def numbers() -> AsyncIterator[int]:
        nonlocal open_ones
        open_ones += 1
        try:
            yield 0
            await asyncio.sleep(0)
            yield 1
            raise kept
        finally:
            open_ones -= 1

    async def read() -> None:
        async for _ in Flow.defer(lambda: Flow.from_async_iterable(numbers())).retry(9):
            pass

    for turns in range(20):
        reading = asyncio.create_task(read())
        await idle(turns)
        reading.cancel()
        await asyncio.wait([reading])
        await idle()
        assert 0 == open_ones, turns
