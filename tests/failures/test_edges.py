"""Subscribers and hooks are at the edges of a flow: an error that one of them raises reaches the hook or the loop only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, field

from reactive_aio import UNBOUNDED, Flow, hooks, schedulers
from reactive_aio.testing import settle
from tests.conftest import LOOPS
from tests.failures.cells import Case
from tests.failures.code import AnyFlow, Code
from tests.failures.ends import ENDS
from tests.failures.kinds import ALL_KINDS, shown, stands_for
from tests.failures.running import Bench, none_go_wrong

Check = Callable[[Code, Bench, list[BaseException]], Awaitable[list[str]]]


@define(eq=False)
class Raising:
    """A subscriber that raises from one of its methods."""

    code: Code
    bad: str
    over: asyncio.Event
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    heard: list[str] = field(factory=list[str])

    def _hear(self, signal: str) -> None:
        self.heard.append(signal)
        if signal == self.bad:
            self.loop.call_soon_threadsafe(self.over.set)
            self.code.trip()

    def on_subscribe(self, subscription: Any) -> None:
        """Ask for all."""
        self._hear("on_subscribe")
        subscription.request(UNBOUNDED)

    def on_next(self, item: Any) -> None:
        """Take an element."""
        self._hear("on_next")

    def on_error(self, error: BaseException) -> None:
        """Take the failure."""
        self._hear("on_error")

    def on_complete(self) -> None:
        """Take the end."""
        self._hear("on_complete")


def subscriber(bad: str, around: Callable[[AnyFlow], AnyFlow]) -> Check:
    """Return the check of a subscriber that raises. The hook gets the error, and the subscriber no more signals."""

    async def check(code: Code, bench: Bench, dropped: list[BaseException]) -> list[str]:
        raising = Raising(code, bad, asyncio.Event())
        source = code.failing() if bad == "on_error" else Flow.from_async_iterable(quiet(code))
        around(source).subscribe(raising)
        await raising.over.wait()
        await settle()
        wrong = [] if raising.heard[-1] == bad else [f"the subscriber has heard {raising.heard}"]
        return [*wrong, *told_once(dropped, code)]

    return check


async def quiet(code: Code) -> Any:
    """Generate two elements, and clean up."""
    code.open += 1
    try:
        yield 0
        yield 1
    finally:
        code.open -= 1


def told_once(dropped: list[BaseException], code: Code) -> list[str]:
    """Return what is wrong unless the hook was told once, of what was raised."""
    told = ", ".join(map(shown, dropped))
    return (
        []
        if len(dropped) == 1 and stands_for(dropped[0], code.error)
        else [f"the hook was told of: {told or 'nothing'}"]
    )


def test_an_exception_of_a_subscriber_goes_to_the_hook_once() -> None:
    places: dict[str, Callable[[AnyFlow], AnyFlow]] = {
        "fused": lambda flow: flow,
        "behind a boundary": lambda flow: flow.publish_on(schedulers.current(), prefetch=1),
        "on a thread": lambda flow: flow.publish_on(schedulers.thread("subscriber's")),
    }
    none_go_wrong(
        Case(f"subscribe.{bad}, {name}", kind, subscriber(bad, around), loop)
        for bad in ("on_subscribe", "on_next", "on_error", "on_complete")
        for name, around in places.items()
        for kind in ALL_KINDS
        for loop in LOOPS
    )


def failing_hook(end: str, around: Callable[[AnyFlow], AnyFlow]) -> Check:
    """Return the check of a hook that raises. The flow goes on, and the loop's exception handler gets the error."""

    async def check(code: Code, bench: Bench, dropped: list[BaseException]) -> list[str]:
        second = ValueError("for the hook")
        wrong: list[str] = []
        with hooks.using(on_error_dropped=code.calls()):
            try:
                await ENDS[end](around(Flow.from_async_iterable(cleaned_badly(second)).map(code.fails)))
            except BaseException as error:
                wrong += [] if error is code.first else [f"the end raised {shown(error)}, not the first failure"]
            else:
                wrong.append("the end raised nothing")
            await settle()
        if not code.raised:
            wrong.append("the hook was never called")
        if not any(stands_for(each, code.error) for each in bench.errors_handled):
            wrong.append("the loop was not told of what the hook raised")
        if second not in bench.errors_handled:
            wrong.append("the loop was not told of the error that the hook was told of")
        return wrong

    return check


async def cleaned_badly(error: BaseException) -> Any:
    """Generate elements, and raise when that ends."""
    try:
        yield 0
        yield 1
    finally:
        raise error


def failing_discard(end: str, around: Callable[[AnyFlow], AnyFlow]) -> Check:
    """Return the check of an element hook that raises. The other hook gets the error, and the flow fails as before."""

    async def check(code: Code, bench: Bench, dropped: list[BaseException]) -> list[str]:
        with hooks.using(on_discard=code.calls()):
            try:
                await ENDS[end](around(code.failing().buffer(2)))
            except BaseException as error:
                wrong = [] if error is code.first else [f"the end raised {shown(error)}, not the first failure"]
            else:
                wrong = ["the end raised nothing"]
        await settle()
        return [*wrong, *told_once(dropped, code)]

    return check


def test_an_exception_of_the_hooks_is_reported_and_changes_nothing() -> None:
    places: dict[str, Callable[[AnyFlow], AnyFlow]] = {
        "fused": lambda flow: flow,
        "behind a boundary": lambda flow: flow.publish_on(schedulers.current(), prefetch=1),
        "from a thread": lambda flow: flow.subscribe_on(schedulers.thread("hooked")),
    }
    none_go_wrong(
        Case(f"hooks.{hook} at {end}, {name}", kind, check(end, around), "asyncio", hook != "on_error_dropped")
        for hook, check in (("on_error_dropped", failing_hook), ("on_discard", failing_discard))
        for end in ("to_list", "for_each async", "async for", "subscribe")
        for name, around in places.items()
        for kind in ALL_KINDS
    )
