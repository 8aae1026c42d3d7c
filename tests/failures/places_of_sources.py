"""The places in sources where a user's code is called; see `tests.failures.places`, which takes them in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define

from reactive_aio import Emitter, Flow
from tests.failures.code import AnyFlow, AsyncResource, Code, Contract, Items, Resource
from tests.failures.places import SOON, flow, followed, held

# -- sources

flow("defer", "factory", lambda code: Flow.defer(code.calls(code.numbers)))
flow(
    "error",
    "error",
    lambda code: Flow.error(code.calls(lambda: code.first)),
    lasting=lambda code: Flow.never().concat(Flow.error(code.calls())),
)
flow("from_awaitable", "factory", lambda code: Flow.from_awaitable(code.awaits(lambda: 1, waits=True)))
flow(
    "from_awaitable",
    "factory, when it is called",
    lambda code: Flow.from_awaitable(code.calls(lambda: asyncio.Event().wait())),
)
flow(
    "from_callable",
    "fn",
    lambda code: Flow.from_callable(code.calls(lambda: 1)),
    lasting=followed(lambda code: Flow.from_callable(code.calls(lambda: 1))),
)
flow("from_callback", "register", lambda code: Flow.from_callback(code.calls()))


def emitting(code: Code) -> AnyFlow:
    """Register for callbacks that come at once, and unregister with an error."""

    def register(emitter: Emitter[int]) -> Callable[[], object]:
        emitter.next(0)
        emitter.next(1)
        if not code.endless:
            emitter.complete()
        return code.calls()

    return Flow.from_callback(register)


def failing_emitter(code: Code) -> AnyFlow:
    """Have a callback tell of an error."""

    def register(emitter: Emitter[int]) -> None:
        emitter.next(0)
        if code.armed:
            code.raised += 1
            emitter.error(code.error)

    return Flow.from_callback(register)


def emitting_later(code: Code, bad: str) -> AnyFlow:
    """Register by awaiting, and unregister likewise, with an error in one of them."""

    async def call(name: str) -> None:
        await asyncio.sleep(0)
        if name == bad:
            code.trip()

    async def register(emitter: Emitter[int]) -> Callable[[], object]:
        await call("register")
        emitter.next(0)
        emitter.next(1)
        if not code.endless:
            emitter.complete()
        return lambda: call("unregister")

    return Flow.from_callback(register)


def leaving_later(code: Code) -> AnyFlow:
    """Register for callbacks that come at once, and unregister by awaiting, with an error."""

    def register(emitter: Emitter[int]) -> Callable[[], object]:
        emitter.next(0)
        emitter.next(1)
        if not code.endless:
            emitter.complete()
        return code.awaits()

    return Flow.from_callback(register)


flow("from_callback", "register, async", lambda code: emitting_later(code, "register"))
flow(
    "from_callback",
    "register's unregister, async",
    lambda code: emitting_later(code, "unregister"),
    cleanup=True,
    in_task=True,
)
flow("from_callback", "register's unregister, async alone", leaving_later, cleanup=True, in_task=True)
flow("from_callback", "register's unregister", emitting, cleanup=True)
flow("from_callback", "Emitter.error", failing_emitter)


@define(eq=False)
class Client:
    """A Poll and the context manager around it, with one method that raises."""

    code: Code
    bad: str
    left: int = 2

    async def _go(self, method: str) -> None:
        await asyncio.sleep(0)
        if method == self.bad:
            self.code.trip()

    async def __aenter__(self) -> Client:
        await self._go("__aenter__")
        self.code.open += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.code.open -= 1
        await self._go("__aexit__")

    async def fetch(self, n: int) -> list[int]:
        """Return the next element."""
        await self._go("fetch")
        if not self.left:
            raise StopAsyncIteration
        if self.left == 1:
            await self.code.waits()
        self.left -= 1
        return [self.left]

    async def idle(self) -> None:
        """Keep alive."""
        await self._go("idle")

    async def close(self) -> None:
        """Let go."""
        await self._go("close")


def slowly(code: Code) -> AnyFlow:
    """Want nothing of a client for a while."""
    polled = Flow.from_poll(lambda: Client(code, "idle"), heartbeat=SOON)
    return polled.concat_map(lambda n: Flow.timer(0.01).map(lambda _: n))


flow("from_poll", "open", lambda code: Flow.from_poll(code.calls(lambda: Client(code, ""))))
for method in ("__aenter__", "fetch"):
    flow(
        "from_poll",
        f"open's {method}",
        lambda code, method=method: Flow.from_poll(lambda: Client(code, method)),
        not_kinds=("StopAsyncIteration",) if method == "fetch" else (),
    )
flow("from_poll", "open's idle", slowly)
for method in ("close", "__aexit__"):
    flow(
        "from_poll",
        f"open's {method}",
        lambda code, method=method: Flow.from_poll(lambda: Client(code, method)),
        cleanup=True,
        in_task=True,
    )


def blocking(code: Code) -> AnyFlow:
    """Return the flow of a function that makes a generator with a ``finally`` that raises."""
    return Flow.from_blocking(lambda: code.generator(finally_=True))


flow(
    "from_blocking",
    "poll",
    lambda code: Flow.from_blocking(code.calls(lambda: [0])),
    lasting=followed(lambda code: Flow.from_blocking(code.calls(lambda: [0]))),
)
flow(
    "from_blocking",
    "poll's generator",
    lambda code: Flow.from_blocking(code.generator),
    lasting=held(lambda code: Flow.from_blocking(code.generator)),
)
flow(
    "from_blocking",
    "poll's generator's finally",
    blocking,
    cleanup=True,
    python_swallows=("GeneratorExit",),
    lasting=held(blocking),
)


async def emit_and_raise(code: Code, emit: Callable[[int], Awaitable[None]]) -> None:
    """Emit an element, then raise."""
    await emit(0)
    await code.waits()
    code.trip()


async def emit_and_clean_up(code: Code, emit: Callable[[int], Awaitable[None]]) -> None:
    """Emit elements, and raise in ``finally``."""
    try:
        await emit(0)
        await code.waits()
        await emit(1)
    finally:
        code.trip()


def creating(code: Code, produce: Callable[[Code, Any], Awaitable[None]]) -> AnyFlow:
    """Return the flow of a producer."""

    async def producer(emit: Any) -> None:
        await produce(code, emit)

    return Flow.create(producer)


flow("create", "producer", lambda code: creating(code, emit_and_raise))
flow("create", "producer's finally", lambda code: creating(code, emit_and_clean_up), cleanup=True, in_task=True)


def of_generator(code: Code) -> AnyFlow:
    """Return the flow of a generator with a ``finally`` that raises."""
    return Flow.from_iterable(code.generator(finally_=True))


def iterating(bad: str) -> Callable[[Code], AnyFlow]:
    """Return the flow of an iterable that raises in one method."""
    return lambda code: Flow.from_iterable(Items(code, bad))


flow(
    "from_iterable",
    "generator",
    lambda code: Flow.from_iterable(code.generator()),
    lasting=held(lambda code: Flow.from_iterable(code.generator())),
)
flow(
    "from_iterable",
    "generator's finally",
    of_generator,
    cleanup=True,
    python_swallows=("GeneratorExit",),
    lasting=held(of_generator),
)
flow(
    "from_iterable",
    "items, a function",
    lambda code: Flow.from_iterable(code.calls(lambda: [0])),
    lasting=followed(lambda code: Flow.from_iterable(code.calls(lambda: [0]))),
)
flow("from_iterable", "__iter__", iterating("__iter__"), lasting=held(iterating("__iter__")))
flow(
    "from_iterable",
    "__next__",
    iterating("__next__"),
    lasting=held(iterating("__next__")),
    not_kinds=("StopIteration",),
)
flow(
    "from_async_iterable",
    "items, a function",
    lambda code: Flow.from_async_iterable(code.calls(code.async_generator)),
    in_task=True,
)
flow(
    "from_async_iterable",
    "generator",
    lambda code: Flow.from_async_iterable(code.async_generator()),
)
for late in (False, True):
    flow(
        "from_async_iterable",
        f"generator's finally{', a turn later' * late}",
        lambda code, late=late: Flow.from_async_iterable(code.async_generator(finally_=True, late=late)),
        cleanup=True,
        in_task=True,
        python_swallows=("GeneratorExit",),
    )
for method in ("__aiter__", "__anext__"):
    flow(
        "from_async_iterable",
        method,
        lambda code, method=method: Flow.from_async_iterable(Items(code, method)),
        not_kinds=("StopAsyncIteration",) if method == "__anext__" else (),
    )
flow(
    "generate",
    "step",
    lambda code: Flow.generate(code.calls(lambda at: (at, at + 1)), 0),
    lasting=held(lambda code: Flow.generate(code.calls(lambda at: (at, at + 1)), 0)),
)

for method in ("subscribe", "request", "cancel"):
    flow(
        "from_publisher",
        f"publisher's {method}",
        lambda code, method=method: Flow.from_publisher(Contract(code, method)),
        cleanup=method == "cancel",
        early=method == "cancel",
        foreign=method == "cancel",
    )


def using(code: Code, kind: Any, bad: str) -> AnyFlow:
    """Return a flow that holds a resource."""
    return Flow.using(lambda: kind(code, bad), lambda _: code.numbers())


flow("using", "resource", lambda code: Flow.using(code.calls(lambda: Resource(code, "")), lambda _: code.numbers()))
flow("using", "fn", lambda code: Flow.using(lambda: Resource(code, ""), code.calls(lambda _: code.numbers())))
flow(
    "using",
    "fn, of an async resource",
    lambda code: Flow.using(lambda: AsyncResource(code, ""), code.calls(lambda _: code.numbers())),
)
for kind, name in ((Resource, "__{}__"), (AsyncResource, "__a{}__")):
    flow("using", name.format("enter"), lambda code, kind=kind: using(code, kind, "enter"))
    flow(
        "using",
        name.format("exit"),
        lambda code, kind=kind: using(code, kind, "exit"),
        cleanup=True,
        in_task=kind is AsyncResource,
    )
