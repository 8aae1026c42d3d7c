"""The order of the partitions and the account of the credits, with tasks that are played by hand."""

from __future__ import annotations

import pickle
import random
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")

from reactive_aio.errors import SparkJobError
from reactive_aio.spark.delivery import Delivery
from reactive_aio.spark.failures import pack
from reactive_aio.spark.link import Link
from reactive_aio.spark.wire import FRAME, FrameReader


class Loop:
    """The inlet, and what the delivery asks of the job."""

    def __init__(self, *, prefetch: int = 16, partitions: int = 3, ahead: int = 1) -> None:
        self.items: list[Any] = []
        self.running: list[int] = []
        self.ended = False
        self.error: BaseException | None = None
        self.delivery = Delivery(cast("Any", self), self, prefetch)
        self.delivery.request(prefetch)
        self.delivery.begin(partitions, ahead)

    def on_chunk(self, items: list[Any]) -> None:
        assert not self.delivery.over
        self.items += items

    def run(self, partition: int) -> None:
        self.running.append(partition)

    def finish(self, error: Exception | None) -> None:
        assert not self.ended
        self.ended, self.error, self.delivery.over = True, error, True


class Task:
    """A task and its link in one."""

    def __init__(self, loop: Loop, partition: int, attempt: int = 0) -> None:
        self.loop = loop
        self.partition = partition
        self.attempt = attempt
        self.granted = 0
        self.skip: int | None = None
        self.stopped = False
        loop.delivery.connected(self.link)

    @property
    def link(self) -> Link:
        return cast("Link", self)

    def start(self, skip: int) -> None:
        assert self.skip is None
        self.skip = skip

    def grant(self, n: int) -> None:
        assert n > 0
        assert self.skip is not None
        assert not self.stopped
        self.granted += n

    def stop(self) -> None:
        self.stopped = True

    def send(self, *items: Any) -> None:
        assert len(items) <= self.granted
        self.granted -= len(items)
        self.loop.delivery.chunk(self.link, len(items), pickle.dumps(list(items)))

    def end(self) -> None:
        self.loop.delivery.ended(self.link)

    def die(self) -> None:
        self.loop.delivery.lost(self.link)


def test_those_ahead_get_a_share_and_the_one_in_turn_the_rest() -> None:
    loop = Loop(prefetch=16)
    ahead, first = Task(loop, 1), Task(loop, 0)

    assert (2, 14) == (ahead.granted, first.granted)
    assert [0, 1] == loop.running


def test_those_ahead_get_a_slot_only_after_the_one_before_them() -> None:
    loop = Loop(partitions=9, ahead=2)
    assert [0] == loop.running
    first = Task(loop, 0)
    assert [0, 1] == loop.running
    Task(loop, 1)
    assert [0, 1, 2] == loop.running
    Task(loop, 2)
    assert [0, 1, 2] == loop.running

    first.end()
    loop.delivery.confirmed(0)
    assert [0, 1, 2, 3] == loop.running


def test_what_comes_ahead_waits_for_its_turn() -> None:
    loop = Loop()
    ahead, first = Task(loop, 1), Task(loop, 0)
    ahead.send("b", "c")
    first.send("a")
    assert ["a"] == loop.items

    first.end()
    loop.delivery.confirmed(0)

    assert ["a", "b", "c"] == loop.items
    assert [0, 1, 2] == loop.running
    assert ahead.granted == 13  # what the first did not need


def test_an_end_that_spark_does_not_confirm_is_none() -> None:
    loop = Loop(partitions=1, ahead=0)
    cut_short = Task(loop, 0)
    cut_short.send(0, 1)
    cut_short.end()  # Python saw its input end, because Spark failed to read it
    assert not loop.ended

    again = Task(loop, 0, attempt=1)
    assert 2 == again.skip
    again.send(2)
    assert not loop.ended
    again.send(3)
    again.end()
    loop.delivery.confirmed(0)

    assert [0, 1, 2, 3] == loop.items
    assert loop.ended
    assert loop.error is None


def test_credit_of_a_lost_task_goes_to_the_next_attempt() -> None:
    loop = Loop(partitions=1, ahead=0)
    first = Task(loop, 0)
    first.send(0, 1, 2)
    first.die()
    second = Task(loop, 0, attempt=1)

    assert [3, 13] == [second.skip, second.granted]


def test_a_second_attempt_waits_while_the_first_lives() -> None:
    loop = Loop(partitions=1, ahead=0)
    first, speculative = Task(loop, 0), Task(loop, 0, attempt=1)
    first.send(0)
    assert speculative.skip is None

    first.die()
    assert [1, 15] == [speculative.skip, speculative.granted]


def test_spark_saying_done_without_the_end_is_an_error() -> None:
    loop = Loop(partitions=1, ahead=0)
    Task(loop, 0).send(0)
    loop.delivery.confirmed(0)

    assert isinstance(loop.error, SparkJobError)


def test_a_failure_ahead_waits_for_its_turn() -> None:
    loop = Loop()
    first, ahead = Task(loop, 0), Task(loop, 1)
    loop.delivery.failed(ahead.link, pack(ValueError("later"), "here", lambda _: None))
    assert not loop.ended

    first.send("a")
    first.end()
    loop.delivery.confirmed(0)

    assert ["a"] == loop.items
    assert "later" == str(loop.error)


def test_a_connection_for_a_partition_that_is_over_is_told_so() -> None:
    loop = Loop()
    first = Task(loop, 0)
    first.end()
    loop.delivery.confirmed(0)

    assert Task(loop, 0, attempt=1).stopped
    assert Task(loop, 99).stopped


@pytest.mark.parametrize("seed", range(300))
def test_whatever_happens_the_order_is_right_and_the_account_balances(seed: int) -> None:
    """Tasks that run, die and come again, and a subscriber that requests as the region does, at random."""
    chance = random.Random(seed)
    sizes = [chance.randrange(0, 40) for _ in range(chance.randrange(1, 6))]
    prefetch, ahead = chance.choice([1, 2, 3, 8, 16, 64]), chance.randrange(0, 4)
    data = [[(index, at) for at in range(size)] for index, size in enumerate(sizes)]
    loop = Loop(prefetch=prefetch, partitions=len(sizes), ahead=min(ahead, len(sizes) - 1))
    tasks: dict[int, Task] = {}
    sent: dict[int, int] = {}
    done: set[int] = set()
    requested, used = prefetch, 0
    for _ in range(20_000):
        if loop.ended:
            break
        if chance.random() < 0.3 and used < len(loop.items):
            used += 1
        if prefetch - (requested - used) >= prefetch - (prefetch >> 2):
            n = prefetch - (requested - used)
            requested += n
            loop.delivery.request(n)
        index = chance.choice([index for index in loop.running if index not in done] or [0])
        task = tasks.get(index)
        if index in done:
            continue
        if task is None:
            tasks[index] = Task(loop, index)
            sent.pop(index, None)
        elif chance.random() < 0.05:
            task.die()
            del tasks[index]
        elif task.skip is not None:
            at = sent.setdefault(index, task.skip)
            if at == sizes[index] and (task.granted or task.stopped):
                task.end()
                loop.delivery.confirmed(index)
                done.add(index)
            elif task.granted:
                n = chance.randint(1, min(task.granted, sizes[index] - at))
                sent[index] = at + n
                task.send(*data[index][at : at + n])
        held = sum(task.granted for task in tasks.values())
        assert requested - used <= prefetch
        assert held <= requested - len(loop.items)
    assert loop.ended, "it got stuck"
    assert loop.error is None
    assert [item for items in data for item in items] == loop.items


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_frames_are_cut_out_of_whatever_arrives(size: int) -> None:
    frames = [(1, 3, b"abc"), (3, 0, b""), (1, 2**32 - 1, bytes(300))]
    data = b"".join(FRAME.pack(kind, count, len(payload)) + payload for kind, count, payload in frames)
    reader = FrameReader()

    found = [frame for at in range(0, len(data), size) for frame in reader.feed(data[at : at + size])]

    assert frames == found
