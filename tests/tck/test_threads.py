"""Publishers of somebody else's that use threads: these are asked whether they are at work, where they can be."""

from __future__ import annotations

import asyncio
import threading
import time
from queue import SimpleQueue
from typing import Any

from reactive_aio.tck import Environment, PublisherVerification, contents_of, verify
from tests.tck.mutants.correct import GoodPublisher, GoodSubscription


class OnAThread(GoodSubscription):
    """Does everything on one thread of its own, which ends with the stream."""

    orders: Any = None

    def request(self, n: int) -> None:
        if self.over:
            return
        if self.orders is None:
            self.orders = SimpleQueue()
            threading.Thread(target=self.work, args=(self.orders,), daemon=True).start()
        self.orders.put(n)

    def work(self, orders: SimpleQueue[int]) -> None:
        while not self.over:
            n = orders.get()
            if n:
                super().request(n) if n > 0 else self.fail(ValueError(f"§3.9 request({n})"))
            elif not self.over:
                self.fail(ValueError("§3.9 request(0)"))

    def cancel(self) -> None:
        super().cancel()
        if self.orders is not None:
            self.orders.put(1)


# A few tests and a long silence: the thread may have to wait for a processor.
TOLD_BY_SILENCE = [
    name
    for name in contents_of(PublisherVerification)
    if any(each in name for each in ("3Must", "spec101", "requestZero", "spec312"))
]


def test_a_publisher_on_a_thread_of_its_own_can_be_verified() -> None:
    class ThreadVerification(PublisherVerification):
        environment = Environment(threads=True, silence=0.25)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=OnAThread)

    found = {result.about.name: result.outcome for result in verify(ThreadVerification, TOLD_BY_SILENCE)}

    assert dict.fromkeys(TOLD_BY_SILENCE, "held") == found


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
        environment = Environment(deadline=0.05)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=OnAThread)

    (result,) = verify(ThreadVerification, ["test_required_createPublisher3MustProduceAStreamOfExactly3Elements"])

    assert "broken" == result.outcome
    assert "(work)' is at work" in result.text
    assert "Environment(threads=True)" in result.text
