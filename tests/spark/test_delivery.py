"""The order of the partitions and the account of the credits, with tasks that are played by hand."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")

from reactive_aio._remote.frames import LAST, PART, Frame
from reactive_aio._remote.limit import MOST_BYTES
from reactive_aio.errors import SparkJobError
from reactive_aio.spark._delivery.at_end import DeliveryAtEnd
from reactive_aio.spark._delivery.delivery import Delivery
from reactive_aio.spark._delivery.held import Held
from reactive_aio.spark._delivery.in_turn import DeliveryInTurn
from reactive_aio.spark._delivery.link import Link
from reactive_aio.spark._delivery.ordered import OrderedDelivery
from reactive_aio.spark._delivery.unordered import UnorderedDelivery
from reactive_aio.spark._task.failures import pack


class Loop:
    """The inlet, and what the delivery asks of the job."""

    def __init__(
        self,
        kind: type[Delivery] = OrderedDelivery,
        *,
        prefetch: int = 16,
        partitions: int = 3,
        slots: int = 3,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.items: list[Any] = []
        self.running: list[int] = []
        self.ended = False
        self.error: BaseException | None = None
        self.delivery = kind(cast("Any", self), self, prefetch, most_bytes)
        self.delivery.request(prefetch)
        self.delivery.begin(partitions, slots)

    def on_chunk(self, items: list[Any]) -> None:
        assert not self.delivery.over
        self.items += items

    def run(self, partition: int) -> bool:
        self.running.append(partition)
        return True

    def gather(self, first: int, groups: Sequence[range]) -> None:
        raise AssertionError("these partitions are read one by one")

    def finish(self, error: BaseException | None) -> None:
        assert not self.ended
        self.ended, self.error, self.delivery.over = True, error, True


class Task:
    """A task and its link in one."""

    def __init__(self, loop: Loop, partition: int, attempt: int = 0) -> None:
        self.loop = loop
        self.partition = partition
        self.attempt = attempt
        self.granted = self.room = 0
        self.skip: int | None = None
        self.place: int | None = None
        self.stopped = False
        loop.delivery.connected(self.link)

    @property
    def link(self) -> Link:
        return cast("Link", self)

    def start(self, skip: int, place: int) -> None:
        assert self.skip is None
        self.skip, self.place = skip, place

    def grant(self, n: int) -> None:
        assert n > 0
        assert self.skip is not None
        assert not self.stopped
        self.granted += n

    def allow(self, size: int) -> None:
        assert size > 0
        assert not self.stopped
        self.room += size

    def told(self) -> tuple[int | None, int | None, int]:
        """The elements to leave out, the place to begin at, and the number to send."""
        return self.skip, self.place, self.granted

    def stop(self) -> None:
        self.stopped = True

    def send(self, *items: Any) -> None:
        assert len(items) <= self.granted
        self.granted -= len(items)
        frame = Frame(PART, self.partition, len(items), pickled=pickle.dumps(list(items)))
        assert self.room > 0
        self.room -= frame.size
        self.loop.delivery.chunk(self.link, frame)

    def end(self, passed: int = 0, *, decided: bool = False) -> None:
        self.loop.delivery.ended(self.link, Frame(LAST, self.partition, place=passed, detail=decided))

    def die(self) -> None:
        self.loop.delivery.lost(self.link)


def test_those_ahead_get_a_share_and_the_one_in_turn_the_rest() -> None:
    loop = Loop(prefetch=16)
    ahead, first = Task(loop, 1), Task(loop, 0)

    assert (2, 14) == (ahead.granted, first.granted)
    assert [0, 1] == loop.running


def test_the_share_of_one_ahead_is_kept_until_its_task_connects() -> None:
    loop = Loop(prefetch=16)
    first = Task(loop, 0)
    assert 14 == first.granted

    assert 2 == Task(loop, 1).granted


def test_what_comes_at_the_end_is_made_on_all_slots_but_one() -> None:
    loop = Loop(DeliveryAtEnd, prefetch=64, partitions=9, slots=6)
    tasks = [Task(loop, partition) for partition in range(5)]

    assert [0, 1, 2, 3, 4] == loop.running
    assert [56, 2, 2, 2, 2] == [task.granted for task in tasks]

    for task in reversed(tasks):
        task.send(task.partition)
        task.end()
        loop.delivery.confirmed(task.partition)
    assert [0, 1, 2, 3, 4] == loop.items


def test_those_ahead_get_a_slot_only_after_the_one_before_them() -> None:
    loop = Loop(partitions=9, slots=4)
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
    assert ahead.granted == 11  # what the first did not need, but for the share of the next


def test_an_end_that_spark_does_not_confirm_is_none() -> None:
    loop = Loop(partitions=1)
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
    loop = Loop(partitions=1)
    first = Task(loop, 0)
    first.send(0, 1, 2)
    first.die()
    second = Task(loop, 0, attempt=1)

    assert [3, 13] == [second.skip, second.granted]


def test_a_second_attempt_waits_while_the_first_lives() -> None:
    loop = Loop(partitions=1)
    first, speculative = Task(loop, 0), Task(loop, 0, attempt=1)
    first.send(0)
    assert speculative.skip is None

    first.die()
    assert [1, 15] == [speculative.skip, speculative.granted]


@pytest.mark.parametrize("kind", [OrderedDelivery, DeliveryInTurn, DeliveryAtEnd, UnorderedDelivery])
def test_credit_of_an_attempt_that_spark_no_longer_needs_goes_to_the_next_partition(kind: type[Delivery]) -> None:
    loop = Loop(kind, partitions=2, slots=1)
    first, speculative = Task(loop, 0), Task(loop, 0, attempt=1)
    first.send("a")
    first.end()
    assert (1, 15) == (speculative.skip, speculative.granted)

    loop.delivery.confirmed(0)
    assert speculative.stopped
    speculative.die()

    next_ = Task(loop, 1)
    assert (15, MOST_BYTES) == (next_.granted, next_.room + loop.delivery.held.size)


def test_spark_saying_done_without_the_end_is_an_error() -> None:
    loop = Loop(partitions=1)
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


# -- in turn


def test_in_turn_a_task_ahead_hears_where_it_begins_when_the_one_before_has_ended() -> None:
    loop = Loop(DeliveryInTurn, prefetch=16)
    first, ahead = Task(loop, 0), Task(loop, 1)
    assert [0, 1] == loop.running
    assert (0, 0, 16) == first.told()
    assert (None, None, 0) == ahead.told()

    first.send("a")
    first.end(passed=5)
    assert ahead.skip is None  # Spark may still try again
    loop.delivery.confirmed(0)
    assert (0, 5, 15) == ahead.told()

    late = Task(loop, 2)
    ahead.end(passed=2)
    loop.delivery.confirmed(1)
    assert 7 == late.place


def test_in_turn_a_task_that_comes_when_it_is_its_turn_begins_at_once() -> None:
    loop = Loop(DeliveryInTurn)
    confirm(loop, Task(loop, 0))

    assert (0, 0, 16) == Task(loop, 1).told()


def test_in_turn_another_attempt_begins_in_the_same_place() -> None:
    loop = Loop(DeliveryInTurn)
    Task(loop, 0).end(passed=4)
    loop.delivery.confirmed(0)
    first, speculative = Task(loop, 1), Task(loop, 1, attempt=1)
    first.send("a", "b")
    first.die()
    assert (2, 4) == (speculative.skip, speculative.place)

    speculative.end(passed=9)  # Python saw its input end, because Spark failed to read it
    again = Task(loop, 1, attempt=2)
    assert (2, 4) == (again.skip, again.place)
    again.end(passed=3)
    loop.delivery.confirmed(1)
    assert 7 == Task(loop, 2).place


def test_in_turn_an_attempt_ahead_that_is_lost_leaves_its_turn_to_the_next() -> None:
    loop = Loop(DeliveryInTurn)
    first, lost, next_ = Task(loop, 0), Task(loop, 1), Task(loop, 1, attempt=1)
    lost.die()
    assert next_.skip is None

    first.end(passed=2)
    loop.delivery.confirmed(0)
    assert (0, 2, 16) == next_.told()


def test_in_turn_a_partition_without_a_task_is_empty() -> None:
    loop = Loop(DeliveryInTurn, partitions=2)
    loop.delivery.confirmed(0)

    assert 0 == Task(loop, 1).place


def test_in_turn_a_task_that_has_not_said_how_many_there_were_is_an_error() -> None:
    loop = Loop(DeliveryInTurn, partitions=2)
    Task(loop, 0)
    loop.delivery.confirmed(0)

    assert isinstance(loop.error, SparkJobError)


def test_in_turn_a_partition_that_needs_no_more_is_the_last() -> None:
    loop = Loop(DeliveryInTurn)
    first, ahead = Task(loop, 0), Task(loop, 1)
    first.send("a")
    first.end(passed=1, decided=True)
    loop.delivery.confirmed(0)

    assert ["a"] == loop.items
    assert loop.ended
    assert loop.error is None
    assert ahead.skip is None


# -- as it comes


def side_by_side(*, prefetch: int = 64, partitions: int = 3, slots: int = 3) -> Loop:
    return Loop(UnorderedDelivery, prefetch=prefetch, partitions=partitions, slots=slots)


def confirm(loop: Loop, *tasks: Task) -> None:
    for task in tasks:
        task.end()
        loop.delivery.confirmed(task.partition)


def test_as_it_comes_all_partitions_deliver_at_once() -> None:
    loop = side_by_side(partitions=2)
    first, second = Task(loop, 0), Task(loop, 1)
    second.send("x", "y")
    first.send("a")
    second.send("z")

    assert ["x", "y", "a", "z"] == loop.items
    confirm(loop, second, first)
    assert loop.ended
    assert loop.error is None


def test_as_it_comes_all_slots_but_one_are_used() -> None:
    loop = side_by_side(partitions=9, slots=4)
    assert [0, 1, 2] == loop.running

    tasks = [Task(loop, index) for index in loop.running]
    assert [0, 1, 2] == loop.running
    confirm(loop, tasks[1])
    assert [0, 1, 2, 3] == loop.running


@pytest.mark.parametrize("slots", [0, 1, 2])
def test_as_it_comes_one_partition_runs_where_there_are_no_slots_to_spare(slots: int) -> None:
    loop = side_by_side(slots=slots)

    assert [0] == loop.running
    assert 64 == Task(loop, 0).granted


def test_a_partition_that_is_alone_has_all_credit() -> None:
    loop = side_by_side(partitions=1)

    assert 64 == Task(loop, 0).granted


@pytest.mark.parametrize("partitions", [2, 3, 5])
def test_partitions_that_stand_still_never_stop_one_that_does_not(partitions: int) -> None:
    """It goes on until so much has been consumed that the region requests anew."""
    loop = side_by_side(prefetch=64, partitions=partitions, slots=9)
    *_, quick = [Task(loop, index) for index in range(partitions)]
    sent = 0
    while quick.granted:
        quick.send(sent)
        sent += 1

    assert sent >= 64 - (64 >> 2)


def test_the_credit_of_a_finished_partition_goes_to_those_that_are_left() -> None:
    loop = side_by_side(prefetch=64, partitions=2)
    first, second = Task(loop, 0), Task(loop, 1)
    assert (16, 16) == (first.granted, second.granted)

    confirm(loop, first)

    assert 64 == second.granted


def test_scarce_credit_goes_round() -> None:
    loop = side_by_side(prefetch=1, partitions=3, slots=4)
    tasks = [Task(loop, index) for index in range(3)]
    turns = []
    for _ in range(7):
        (task,) = [task for task in tasks if task.granted]
        turns.append(task.partition)
        task.send(task.partition)
        loop.delivery.request(1)

    assert [0, 1, 2, 0, 1, 2] == turns[1:]  # the first found nobody else


def test_as_it_comes_a_failure_ends_at_once_behind_the_elements_of_its_partition() -> None:
    loop = side_by_side(partitions=2)
    _, second = Task(loop, 0), Task(loop, 1)
    second.send("x")
    loop.delivery.failed(second.link, pack(ValueError("now"), "here", lambda _: None))

    assert ["x"] == loop.items
    assert "now" == str(loop.error)


def test_as_it_comes_an_end_that_spark_does_not_confirm_is_none() -> None:
    loop = side_by_side(partitions=2)
    cut_short, other = Task(loop, 0), Task(loop, 1)
    cut_short.send(0, 1)
    cut_short.end()
    confirm(loop, other)
    assert not loop.ended

    again = Task(loop, 0, attempt=1)
    assert 2 == again.skip
    again.send(2)
    confirm(loop, again)

    assert [0, 1, 2] == loop.items
    assert loop.ended


def test_as_it_comes_spark_saying_done_without_the_end_is_an_error() -> None:
    loop = side_by_side(partitions=2)
    Task(loop, 0).send(0)
    loop.delivery.confirmed(0)

    assert isinstance(loop.error, SparkJobError)


def test_as_it_comes_a_partition_without_a_task_is_empty() -> None:
    loop = side_by_side(partitions=2)
    loop.delivery.confirmed(1)
    loop.delivery.confirmed(0)

    assert loop.ended
    assert loop.error is None


def test_no_partitions_are_an_end() -> None:
    assert side_by_side(partitions=0).ended
    assert Loop(partitions=0).ended


# -- both


@pytest.mark.parametrize("kind", [OrderedDelivery, DeliveryAtEnd, DeliveryInTurn, UnorderedDelivery])
@pytest.mark.parametrize("seed", range(300))
def test_whatever_happens_the_order_is_right_and_the_account_balances(kind: type[Delivery], seed: int) -> None:
    """Tasks that run, die, come again and come twice, and a subscriber that requests as the region does, at random."""
    chance = random.Random(seed)
    sizes = [chance.randrange(0, 40) for _ in range(chance.randrange(1, 6))]
    prefetch, slots = chance.choice([1, 2, 3, 8, 16, 64]), chance.randrange(1, 7)
    data = [[(index, at) for at in range(size)] for index, size in enumerate(sizes)]
    loop = Loop(kind, prefetch=prefetch, partitions=len(sizes), slots=slots)
    tasks: dict[int, Task] = {}
    speculative: dict[int, Task] = {}
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
            tasks[index] = speculative.pop(index) if index in speculative else Task(loop, index)
            sent.pop(index, None)
        elif chance.random() < 0.05:
            task.die()
            del tasks[index]
        elif chance.random() < 0.05 and index not in speculative:
            speculative[index] = Task(loop, index, attempt=1)
        elif task.skip is not None:
            at = sent.setdefault(index, task.skip)
            if at == sizes[index] and (task.granted or task.stopped):
                task.end(passed=sizes[index])
                loop.delivery.confirmed(index)
                done.add(index)
            elif task.granted:
                n = chance.randint(1, min(task.granted, sizes[index] - at))
                sent[index] = at + n
                task.send(*data[index][at : at + n])
        if kind is DeliveryInTurn and task is not None and task.skip is not None:
            assert task.place == sum(sizes[:index])
        held = sum(task.granted for task in [*tasks.values(), *speculative.values()])
        assert requested - used <= prefetch
        assert held <= requested - len(loop.items)
        assert len(loop.running) - len(done) <= max(1, slots - 1)
    assert loop.ended, "it got stuck"
    assert loop.error is None
    found = loop.items if issubclass(kind, OrderedDelivery) else sorted(loop.items, key=lambda item: item[0])  # stable
    assert [item for items in data for item in items] == found


# -- bytes


def test_bytes_are_held_until_their_chunk_has_been_consumed() -> None:
    held = Held()
    held.consume(9)  # what is requested first
    held.deliver(2, 10)
    held.deliver(3, 20)

    assert [0, 10, 0, 0, 20] == [held.consume(1) for _ in range(5)]
    assert 0 == held.size


def test_the_partition_in_turn_is_allowed_the_bytes_but_for_an_eighth() -> None:
    loop = Loop(most_bytes=800)
    first, ahead = Task(loop, 0), Task(loop, 1)

    assert (700, 100) == (first.room, ahead.room)


def test_bytes_are_allowed_again_when_elements_have_been_consumed() -> None:
    loop = Loop(most_bytes=800, prefetch=64, partitions=1)
    task = Task(loop, 0)
    while task.room > 0:
        task.send("x" * 100)
    elements = len(loop.items)
    assert 7 == elements
    loop.delivery.consumed(elements)

    assert 800 == task.room


def test_an_element_larger_than_the_bound_comes_by_itself() -> None:
    loop = Loop(most_bytes=80, prefetch=64, partitions=1)
    task = Task(loop, 0)
    for _ in range(3):
        assert task.room > 0
        task.send("x" * 1000)
        assert task.room <= 0
        loop.delivery.consumed(1)


@pytest.mark.parametrize("kind", [OrderedDelivery, DeliveryAtEnd, DeliveryInTurn, UnorderedDelivery])
@pytest.mark.parametrize("seed", range(100))
def test_whatever_the_sizes_no_more_bytes_are_under_way_than_may_be_and_all_arrive(
    kind: type[Delivery], seed: int
) -> None:
    chance = random.Random(seed)
    counts = [chance.randrange(0, 20) for _ in range(chance.randrange(1, 6))]
    most_bytes, largest = chance.choice([40, 400, 4000]), chance.choice([1, 100, 1000])
    data = [[("x" * chance.randrange(largest), index, at) for at in range(n)] for index, n in enumerate(counts)]
    loop = Loop(kind, prefetch=64, partitions=len(counts), slots=chance.randrange(1, 7), most_bytes=most_bytes)
    tasks: dict[int, Task] = {}
    done: set[int] = set()
    consumed = 0
    while not loop.ended:
        able: list[Any] = []
        for index in loop.running:
            if index not in done:
                task = tasks[index] = tasks.get(index) or Task(loop, index)
                if task.skip is not None and (not data[index] or (task.granted and task.room > 0)):
                    able.append(task)
        consumer = consumed < len(loop.items)
        assert able or consumer, "nobody can go on"
        if consumer and (not able or chance.random() < 0.3):
            consumed += 1
            loop.delivery.consumed(1)
            loop.delivery.request(1)
            continue
        task = chance.choice(able)
        if data[task.partition]:
            task.send(data[task.partition].pop(0))
        else:
            done.add(task.partition)
            task.end(passed=counts[task.partition])
            loop.delivery.confirmed(task.partition)
        overshoot = len(tasks) * (largest + 100)
        assert sum(len(each[0]) for each in loop.items[consumed:]) <= most_bytes + overshoot
    assert sum(counts) == len(loop.items)
