"""Publishers of somebody else's on bare threads: the tests wait for silence where nobody can be asked."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from reactive_aio.tck import Environment, PublisherVerification, verify
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


def test_a_publisher_on_a_thread_of_its_own_can_be_verified() -> None:
    class ThreadVerification(PublisherVerification):
        environment = Environment(threads=True, silence=0.02)

        def create_publisher(self, elements: int) -> Any:
            return GoodPublisher(elements, subscription=OnAThread)

    found = {result.about.name: result.text for result in verify(ThreadVerification) if result.outcome == "broken"}

    assert {} == found, "\n".join(found.values())
