"""A loop whose turns a test takes one by one, and a region on it, fed and read by the test."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, cast

from attrs import define, field

from reactive_aio._fusion import Origin, Placed, RegionRun, Stage
from reactive_aio._plan import Pulled, Region
from reactive_aio._runtime.driver import RegionDriver
from reactive_aio._runtime.host import FlowHost
from reactive_aio._runtime.inputs import PulledInput, PushedInput
from reactive_aio._runtime.lifetime import Lifetime


@define(eq=False)
class ByTurns:
    """Keeps what is scheduled, until the test has it called."""

    ready: deque[tuple[Callable[[], None], Context]] = field(factory=deque)
    woken: int = 0
    """How often another thread has woken it."""
    closed: bool = False
    running: bool = True

    def is_running(self) -> bool:
        return self.running

    def is_closed(self) -> bool:
        return self.closed

    def call_soon(self, call: Callable[[], None], *, context: Context) -> None:
        if self.closed:
            raise RuntimeError("closed")
        self.ready.append((call, context))

    def call_soon_threadsafe(self, call: Callable[[], None], *, context: Context) -> None:
        self.call_soon(call, context=context)
        self.woken += 1

    def turn(self) -> int:
        """Have all called that is scheduled now; tell how much that was."""
        count = len(self.ready)
        for _ in range(count):
            call, context = self.ready.popleft()
            context.run(call)
        return count

    def rest(self) -> None:
        """Have turns until nothing is scheduled."""
        while self.turn():
            pass


@define(eq=False)
class Signals:
    """Writes down what a region gives (a Receiver), and may do something about it."""

    heard: list[Any] = field(factory=list)
    react: Callable[[Any], object] = lambda signal: None
    subscription: Any = None

    def _hear(self, signal: Any) -> None:
        self.heard.append(signal)
        self.react(signal)

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        self._hear("subscribed")

    def on_chunk(self, items: list[Any]) -> None:
        self._hear(items)

    def on_error(self, error: BaseException) -> None:
        self._hear(error)

    def on_complete(self) -> None:
        self._hear("complete")


@define
class Upstream:
    """A subscription that notes what is asked of it."""

    requests: list[int] = field(factory=list)
    cancels: int = 0

    def request(self, n: int) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


@define(eq=False)
class Bed:
    """A region on a loop of its own, and what is around it."""

    driver: RegionDriver
    loop: ByTurns
    signals: Signals
    upstream: Upstream
    released: list[str]

    @property
    def heard(self) -> list[Any]:
        return self.signals.heard

    def begin(self) -> None:
        """Have the region begin, and take its first turn."""
        fed = self.driver.fed is not None
        self.driver.begin(self.signals, (lambda: self.upstream) if fed else None, called=False)
        self.loop.rest()


def region_of(
    *stages: Stage[Any, Any], source: Pulled[Any] | None = None, prefetch: int | None = None, begun: bool = True
) -> Bed:
    """Return a region that is fed by the test, or reads a source."""
    placed = tuple(Placed(stage, Origin("here.py", at)) for at, stage in enumerate(stages, 1))
    region = Region("the source", placed, None, None)
    loop, signals, upstream, released = ByTurns(), Signals(), Upstream(), list[str]()
    run = RegionRun(region.stages, region.feed, counted=source is None or source.plain)
    driver = RegionDriver(
        run,
        region,
        PushedInput(prefetch, run) if source is None else PulledInput(source, run),
        cast("Any", loop),
        copy_context(),
        signals,
        FlowHost(Lifetime()),
        lambda: released.append("released"),
    )
    bed = Bed(driver, loop, signals, upstream, released)
    if begun:
        bed.begin()
    return bed
