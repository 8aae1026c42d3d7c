"""How flows share the slots of a cluster, so that none waits for ever."""

from __future__ import annotations

import gc
import inspect
import random
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio.spark._delivery.slots import Seat, Slots
from reactive_aio.spark._job import job
from reactive_aio.spark._job.job import _slots


class Cluster:
    """Something that flows may run on."""


class Flow:
    """A flow that has any number of partitions left."""

    def __init__(self, cluster: Cluster, slots: int = 0) -> None:
        self.woken = 0
        self.wants = False
        self.seat = Seat.at(cluster, self.wake)
        if slots:
            self.seat.slots.total = slots

    def wake(self) -> None:
        self.woken += 1

    @property
    def held(self) -> int:
        return self.seat.held

    def settle(self) -> None:
        """Do what a flow does that is woken: take what it can, or say that it wants nothing."""
        self.woken = 0
        if self.wants:
            self.take_all()
        else:
            self.seat.decline()

    def take_all(self) -> Flow:
        while self.seat.take():
            pass
        return self


def test_a_flow_that_is_alone_takes_all_slots_but_one() -> None:
    assert 3 == Flow(Cluster(), 4).take_all().held


@pytest.mark.parametrize("slots", [0, 1, 2])
def test_a_flow_may_always_run_something(slots: int) -> None:
    flow = Flow(Cluster(), slots).take_all()
    assert 1 == flow.held

    flow.seat.give_back()
    assert flow.seat.take()


def test_each_flow_that_has_subscribed_finds_a_slot() -> None:
    cluster = Cluster()
    first, second, third = Flow(cluster, 5), Flow(cluster), Flow(cluster)

    assert 2 == first.take_all().held
    assert (1, 1) == (second.take_all().held, third.take_all().held)


def test_a_flow_that_comes_later_finds_the_slot_that_was_left() -> None:
    cluster = Cluster()
    first = Flow(cluster, 3).take_all()
    second = Flow(cluster).take_all()

    assert (2, 1) == (first.held, second.held)


def test_who_has_fewer_goes_first_when_a_slot_is_given_back() -> None:
    cluster = Cluster()
    first = Flow(cluster, 6).take_all()
    second = Flow(cluster).take_all()
    assert (5, 1) == (first.held, second.held)

    first.seat.give_back()
    assert not first.seat.take()
    assert not second.woken  # the one slot that is left stays so
    first.seat.give_back()
    assert not first.seat.take()
    assert second.woken
    second.take_all()

    assert (3, 2) == (first.held, second.held)


def test_of_two_that_have_as_few_the_one_that_was_refused_earlier_goes_first() -> None:
    cluster = Cluster()
    first, second, third = Flow(cluster, 9), Flow(cluster), Flow(cluster)
    assert (6, 1, 1) == (first.take_all().held, second.take_all().held, third.take_all().held)
    assert not second.seat.take()  # which does not put it behind the other

    first.seat.give_back()
    assert (True, False) == (bool(second.woken), bool(third.woken))
    assert not third.seat.take()
    assert second.seat.take()


def test_a_flow_that_leaves_gives_back_all() -> None:
    cluster = Cluster()
    first, second = Flow(cluster, 4).take_all(), Flow(cluster)
    assert (3, 1) == (first.held, second.take_all().held)

    first.seat.leave()
    assert second.woken
    assert 3 == second.take_all().held


def test_whoever_takes_a_slot_wakes_the_next() -> None:
    cluster = Cluster()
    first, second, third = Flow(cluster, 9), Flow(cluster), Flow(cluster)
    assert (6, 1, 1) == (first.take_all().held, second.take_all().held, third.take_all().held)

    first.seat.leave()
    while woken := [flow for flow in (second, third) if flow.woken]:
        woken[0].woken = 0
        woken[0].take_all()

    assert (4, 4) == (second.held, third.held)


def test_a_flow_that_was_forgotten_holds_nothing() -> None:
    cluster = Cluster()
    Flow(cluster, 4).take_all()
    gc.collect()

    assert 3 == Flow(cluster).take_all().held


def test_clusters_are_apart() -> None:
    assert (3, 3) == (Flow(Cluster(), 4).take_all().held, Flow(Cluster(), 4).take_all().held)


def test_a_flow_that_wants_no_more_keeps_nobody_waiting() -> None:
    cluster = Cluster()
    first = Flow(cluster, 5).take_all()
    second = Flow(cluster).take_all()
    assert (4, 1) == (first.held, second.held)
    first.seat.give_back()
    first.seat.give_back()
    assert not first.seat.take()  # for it is the other's turn, which was refused, and has less

    second.seat.decline()
    assert first.woken
    assert 3 == first.take_all().held


# Of each flow: the slots that it holds, its place among those that were refused, or 0, and whether it has subscribed.
State = tuple[tuple[int, int, bool], ...]


def ways_on(state: State, total: int, late: int) -> Iterator[State]:
    """Have each flow do each thing that it can, so many of them subscribing when others have begun."""
    for at, (held, _, subscribed) in enumerate(state):
        for act in ("take", "decline", "give_back", "leave") if subscribed else ("subscribe",):
            slots = Slots(total)
            seats = [Seat(lambda: None, slots) for _ in state]
            for seat, (held_there, refused, there) in zip(seats, state, strict=True):
                seat.held, seat.refused = held_there, refused and refused - len(state) - 1  # before those to come
                if there:
                    slots.seats.add(seat)
            if act == "subscribe":
                begun = any(held_there for held_there, _, _ in state)
                if begun and sum(there for _, _, there in state) < len(state) - late:
                    continue
                slots.seats.add(seats[at])
            elif act != "give_back" or held:
                getattr(seats[at], act)()
            places = sorted(seat.refused for seat in seats if seat.refused)
            yield tuple(
                (seat.held, places.index(seat.refused) + 1 if seat.refused else 0, seat in slots.seats)
                for seat in seats
            )


def reachable(flows: int, total: int, late: int) -> set[State]:
    """Find all states that so many flows can come to."""
    found: set[State] = set()
    new = [((0, 0, False),) * flows]
    while new:
        state = new.pop()
        if state not in found:
            found.add(state)
            new += ways_on(state, total, late)
    return found


def wanted(state: State) -> int:
    """Count the slots that are held, and one for each flow that holds none and may have to."""
    return sum(max(held, 1) for held, _, subscribed in state if subscribed)


@pytest.mark.parametrize(("flows", "total"), [(1, 1), (2, 2), (2, 3), (3, 3), (3, 4), (3, 5)])
@pytest.mark.parametrize("late", [0, 1])
def test_in_whatever_order_flows_act_each_of_them_finds_a_slot(flows: int, total: int, late: int) -> None:
    assert max(map(wanted, reachable(flows, total, late))) <= total


def test_of_two_flows_that_come_one_after_the_other_behind_a_first_the_second_may_find_none() -> None:
    assert max(map(wanted, reachable(3, 5, 2))) == 6


@pytest.mark.parametrize("seed", range(100))
def test_no_slot_lies_idle_that_a_flow_wants_though_others_want_no_more(seed: int) -> None:
    chance = random.Random(seed)
    cluster, slots = Cluster(), chance.randrange(2, 7)
    flows = [Flow(cluster, slots) for _ in range(chance.randrange(1, 4))]
    for _ in range(200):
        flow = chance.choice(flows)
        flow.wants = chance.random() < 0.6
        if flow.held and chance.random() < 0.5:
            flow.seat.give_back()
        flow.settle()
        while woken := [each for each in flows if each.woken]:
            woken[0].settle()
        assert not (flow.seat.slots.spare() and any(each.wants for each in flows))


@pytest.mark.parametrize("seed", range(200))
def test_slots_are_never_given_twice_and_none_lies_idle(seed: int) -> None:
    chance = random.Random(seed)
    cluster, slots = Cluster(), chance.randrange(1, 9)
    flows = [Flow(cluster, slots) for _ in range(chance.randrange(1, slots + 1))]
    for _ in range(300):
        flow = chance.choice(flows)
        if flow.held and chance.random() < 0.5:
            flow.seat.give_back()
        flow.seat.take()
        for each in flows:
            if each.woken:
                each.woken = 0
                each.take_all()
        assert sum(max(each.held, 1) for each in flows) <= max(slots - 1, len(flows))
    for flow in flows:
        flow.take_all()
    while woken := [flow for flow in flows if flow.woken]:
        woken[0].woken = 0
        woken[0].take_all()

    assert sum(flow.held for flow in flows) == max(slots - 1, len(flows))


@pytest.mark.spark
def test_slots_are_counted_whatever_the_default_parallelism(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sc), "defaultParallelism", 200)

    assert 3 == _slots(sc)


@pytest.mark.spark
def test_where_spark_begins_second_attempts_a_task_needs_two_slots(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_known", inspect.unwrap(job._known))  # the settings of a context stay the same elsewhere
    conf = sc._jsc.sc().conf()
    conf.set("spark.speculation.task.duration.threshold", "10min")
    try:
        alone = _slots(sc)
        conf.set("spark.speculation", "true")

        assert (3, 1) == (alone, _slots(sc))
    finally:
        conf.remove("spark.speculation.task.duration.threshold")
        conf.remove("spark.speculation")
