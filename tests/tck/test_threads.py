"""Publishers of somebody else's that use threads: these are asked whether they are at work, where they can be."""

from __future__ import annotations

import asyncio
import threading
import time
from queue import Queue
from typing import Any, ClassVar

import pytest

from reactive_aio.tck import Environment, PublisherVerification, contents_of, verify
from reactive_aio.tck import environment as environment_module
from tests.tck.mutants.correct import GoodPublisher, GoodSubscription
from tests.tck.where import patient


class OnAThread(GoodSubscription):
    """Does everything on one thread of its own, which ends with the stream."""

    threads: ClassVar[list[tuple[threading.Thread, Queue[int]]]] = []
    orders: Any = None

    @classmethod
    def at_work(cls) -> bool:
        """Return whether one of the threads has not come to rest."""
        return any(thread.is_alive() and orders.unfinished_tasks for thread, orders in cls.threads)

    def request(self, n: int) -> None:
        if self.over:
            return
        if self.orders is None:
            self.orders = Queue()
            thread = threading.Thread(target=self.work, args=(self.orders,), daemon=True)
            self.threads.append((thread, self.orders))
            thread.start()
        self.orders.put(n)

    def work(self, orders: Queue[int]) -> None:
        while not self.over:
            n = orders.get()
            if n > 0:
                super().request(n)
            elif not self.over:
                self.fail(ValueError(f"§3.9 request({n})"))
            orders.task_done()

    def cancel(self) -> None:
        super().cancel()
        if self.orders is not None:
            self.orders.put(1)


TOLD_BY_SILENCE = [
    name
    for name in contents_of(PublisherVerification)
    if any(each in name for each in ("3Must", "spec101", "requestZero", "spec312"))
]
SILENCE = 0.123


def test_a_publisher_on_a_thread_of_its_own_can_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, waited = asyncio.sleep, list[float]()

    async def fall_silent(seconds: float) -> None:
        """Have a silence take until nothing is left to do, which on a busy machine may be any time."""
        await sleep(0)
        if seconds == SILENCE:
            waited.append(seconds)
            while OnAThread.at_work():
                await sleep(0.001)

    class ThreadVerification(PublisherVerification):
        environment = patient(threads=True, silence=SILENCE)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=OnAThread)

    monkeypatch.setattr(asyncio, "sleep", fall_silent)
    found = {result.about.name: result.outcome for result in verify(ThreadVerification, TOLD_BY_SILENCE)}

    assert dict.fromkeys(TOLD_BY_SILENCE, "held") == found
    assert len(waited) > len(TOLD_BY_SILENCE)


class ByExecutor(GoodSubscription):
    """Has its elements made in a thread of the loop's executor, and delivers them on the loop."""

    working: bool = False

    def deliver(self) -> None:
        if not self.working and self.demand and self.items:
            self.working = True
            made = asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.001)
            made.add_done_callback(self.made)

    def made(self, _: Any) -> None:
        self.working = False
        if self.over:
            return
        demand, self.demand = self.demand, 1
        super().deliver()
        self.demand = demand - 1
        self.deliver()


def test_a_publisher_that_works_in_an_executor_can_be_verified_without_a_word_about_threads() -> None:
    class ExecutorVerification(PublisherVerification):
        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=ByExecutor)

    found = {result.about.name: result.text for result in verify(ExecutorVerification) if result.outcome == "broken"}

    assert {} == found, "\n".join(found.values())


def test_a_thread_that_cannot_be_asked_is_named_with_the_way_out() -> None:
    class ThreadVerification(PublisherVerification):
        environment = Environment(deadline=0.5)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=OnAThread)

    (result,) = verify(ThreadVerification, ["test_required_createPublisher3MustProduceAStreamOfExactly3Elements"])

    assert "broken" == result.outcome
    assert "(work)' is at work" in result.text
    assert "Environment(threads=True)" in result.text


def test_a_test_that_has_once_waited_in_vain_for_rest_does_not_wait_as_long_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = list[float]()

    async def in_vain(_: Any, within: float) -> None:
        waits.append(within)
        raise TimeoutError("a thread is at work")

    monkeypatch.setattr(environment_module, "settle_here", in_vain)

    class BusyVerification(PublisherVerification):
        environment = Environment(deadline=600.0)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements)

    verify(BusyVerification, ["test_required_createPublisher3MustProduceAStreamOfExactly3Elements"])

    first, *others = waits
    assert 1.0 < first
    assert others
    assert max(others) < 1.0
