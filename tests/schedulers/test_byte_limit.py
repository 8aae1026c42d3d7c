"""The bytes that a region on workers has outstanding are bounded, beside the number of its elements."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio._remote.limit import LARGEST_CHUNK, ByteLimit
from reactive_aio._remote.worker import SMALL
from tests.schedulers import work
from tests.schedulers.by_hand import ByHand
from tests.subscribers import ByHand as Publisher
from tests.subscribers import Recorder, idle

LIMIT = ByteLimit.of(1600, workers=2)


def same(item: Any) -> Any:
    return item


def weighing(size: int) -> ByHand:
    return ByHand(2, byte_limit=LIMIT, weigh=lambda item: size)


async def begun(flow: Flow[Any], request: int = 1_000_000) -> Recorder:
    recorder = Recorder(request)
    flow.subscribe(recorder)
    await idle()
    return recorder


def test_a_limit_is_shared_among_the_chunks_that_can_be_there() -> None:
    assert ByteLimit(1600, share=100) == LIMIT
    assert ByteLimit(3, share=1) == ByteLimit.of(3, workers=50)


@pytest.mark.parametrize(("most", "workers", "chunk"), [(1600, 2, 200), (3, 50, 2), (1 << 30, 1, LARGEST_CHUNK)])
def test_the_elements_of_all_chunks_under_way_have_half_of_a_limit_and_no_chunk_holds_up_the_loop(
    most: int, workers: int, chunk: int
) -> None:
    assert chunk == ByteLimit.of(most, workers).chunk


async def test_two_elements_a_worker_are_requested_until_the_size_of_one_is_known_and_then_the_rest() -> None:
    workers, publisher = weighing(1), Publisher()
    await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same))
    assert [4] == publisher.requests
    publisher.next(0)
    await idle()

    assert 64 == sum(publisher.requests)


async def test_elements_are_outstanding_up_to_half_of_the_limit() -> None:
    workers, publisher = weighing(40), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same))
    sent = 0
    for _ in range(60):
        requested = sum(publisher.requests)
        publisher.next(*range(sent, requested))
        sent = requested
        assert requested - len(recorder.items) <= 1600 / 2 / 40
        await idle()
        workers.do(min(workers.chunks))
        await idle()

    assert len(recorder.items) > 60


async def test_a_chunk_has_two_shares_of_the_limit_at_most() -> None:
    workers = weighing(30)
    await begun(Flow.range(1_000).publish_on(workers, prefetch=64).map(same))
    for _ in range(20):
        workers.do(min(workers.chunks))
        await idle()

    assert 6 == max(map(len, workers.given))


async def test_large_elements_come_one_for_each_worker() -> None:
    workers, publisher = weighing(10_000), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same), request=0)
    publisher.next(*range(4))
    await idle()

    assert [[0], [1]] == workers.given
    workers.do(1)
    workers.do(0)
    await idle()
    assert [[0], [1]] == workers.given
    recorder.request(1)
    await idle()
    assert [0] == recorder.items
    assert [[0], [1], [2]] == workers.given


async def test_elements_that_turn_large_are_requested_in_smaller_numbers() -> None:
    workers, publisher = ByHand(2, byte_limit=LIMIT, weigh=lambda item: 1 if item < 64 else 80), Publisher()
    recorder = await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same))
    sent = 0
    for number in range(100):
        publisher.next(*range(sent, sum(publisher.requests)))
        sent = sum(publisher.requests)
        await idle()
        workers.do(number)
        await idle()

    assert sum(publisher.requests) - len(recorder.items) <= 1600 / 2 / 80


async def test_no_more_chunks_go_out_while_results_of_half_the_limit_wait_here() -> None:
    workers = ByHand(2, seconds=1.0, byte_limit=LIMIT, weigh=lambda item: 1 if isinstance(item, int) else 20)
    recorder = await begun(Flow.range(1_000).publish_on(workers, prefetch=256).map(str), request=0)
    for number in range(200):
        if number in workers.chunks:
            workers.do(number)
        await idle()
    held = len(workers.given)

    assert 1600 / 2 <= 21 * held <= 1600
    recorder.request(held)
    for number in range(held, 200):
        await idle()
        if number in workers.chunks:
            workers.do(number)
    assert 2 * held - 2 <= len(workers.given)


async def test_a_chunk_whose_results_have_its_share_is_told_to_go_on_when_they_have_been_delivered() -> None:
    workers = weighing(40)
    recorder = await begun(Flow.of(100).publish_on(workers, prefetch=64).flat_map_iterable(range), request=2)
    workers.do(0, 3)
    await idle()
    assert [] == workers.told
    recorder.request(1)
    await idle()
    assert [0, 1, 2] == recorder.items
    assert [0] == workers.told
    workers.do(0, 2)
    recorder.request(10)
    await idle()

    assert [0] == workers.told


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_the_sizes_the_limit_holds_and_every_element_comes(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([1, 10, 50, 99]) for _ in range(300)]
    workers = ByHand(2, byte_limit=LIMIT, weigh=lambda item: sizes[item])
    recorder = await begun(Flow.range(300).publish_on(workers, prefetch=64).map(same), request=0)
    while "complete" not in recorder.kinds:
        # The elements of all chunks, and the results of each that is done, which nobody has asked for.
        gone = len(recorder.items)
        out = sum(map(workers.size, workers.given)) - sum(sizes[:gone])
        here = sum(sizes[gone : sum(map(len, workers.given))]) - sum(
            workers.size(workers.given[number]) for number in workers.chunks
        )
        assert out + here <= LIMIT.most + 2 * LIMIT.share
        can_go_on = [number for number in workers.chunks if number not in workers.waiting]
        if can_go_on and draw.random() < 0.7:
            workers.do(draw.choice(can_go_on))
        else:
            recorder.request(draw.randint(1, 5))
        await idle()

    assert [*range(300)] == recorder.items


async def test_workers_without_a_limit_are_asked_for_no_sizes() -> None:
    workers, publisher = ByHand(2), Publisher()
    await begun(Flow.from_publisher(publisher).publish_on(workers, prefetch=64).map(same))

    assert [64] == publisher.requests


# -- on processes


def elements(made: list[int], size: int) -> Iterator[bytes]:
    for at in range(200):
        made.append(at)
        yield bytes([at]) * size


async def test_large_elements_are_not_read_ahead_by_the_prefetch() -> None:
    made: list[int] = []
    pool = schedulers.processes(2, max_bytes=1 << 20)
    flow = Flow.from_iterable(elements(made, 1 << 16)).publish_on(pool).map(work.same)
    async with flow.open() as items:
        first = await anext(items)
        await Flow.of(1).publish_on(schedulers.processes(1)).count()  # time in which more would be read

        # Half of the limit, and the elements that have come here since.
        assert len(made) <= 8 + 2
        rest = [item async for item in items]

    assert [bytes([at]) * (1 << 16) for at in range(200)] == [first, *rest]


async def test_large_results_wait_in_the_worker_before_they_are_made(tmp_path: Path) -> None:
    tally = tmp_path / "tally"
    async with schedulers.processes(1, max_bytes=1 << 20) as pool:
        flow = Flow.of(100).publish_on(pool).flat_map_iterable(work.Tallied(str(tally), 1 << 16))
        async with flow.open() as items:
            assert 1 << 16 == len(await anext(items))
            for _ in range(20):  # the worker takes turns, so that it had one for the rest each time
                await Flow.of(1).publish_on(pool).count()

            assert SMALL >= tally.stat().st_size
            assert 99 == len([item async for item in items])
    assert 100 == tally.stat().st_size


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (0, ValueError, "there must be at least 1 byte"),
        ("1", TypeError, "the number of bytes is a whole number, not str"),
    ],
)
def test_an_argument_that_is_no_number_of_bytes_is_refused(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        schedulers.processes(2, max_bytes=given)


@pytest.mark.parametrize(
    ("given", "shown"), [(32 << 20, "32 MiB"), (1 << 30, "1 GiB"), (3 << 10, "3 KiB"), (1001, "1001 bytes")]
)
def test_plans_show_the_limit(given: int, shown: str) -> None:
    flow = Flow.range(9).publish_on(schedulers.processes(2, max_bytes=given), prefetch=16).map(str)

    assert f" |  boundary, prefetch 16, at most {shown}" == flow.describe().splitlines()[1]
