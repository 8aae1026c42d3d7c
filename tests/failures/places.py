"""Every place of the library where a user's code is called, and how to have it called there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from attrs import frozen

from reactive_aio import Emitter, Flow
from reactive_aio.segments import Stage
from tests.failures.code import AnyFlow, AsyncResource, Code, Contract, Element, Items, Resource

SOON: Final = 1e-9


@frozen
class Place:
    """A place where a user's code is called."""

    method: str
    """The method of Flow."""
    parameter: str
    """Its parameter, or what else of a user's is called."""
    build: Callable[[Code], AnyFlow] | None = None
    """Makes the flow, where the place is in a flow."""
    end: Callable[[Code], Awaitable[object]] | None = None
    """Runs a flow to its end, where the place is in an end."""
    hears: str = "end"
    """Who is told: the ``end``; or the end of the ``first`` failure alone; or it, and the hook of this one: ``first and hook``."""
    cleanup: bool = False
    """Whether it is called when all is over, so that it may be the second failure, or one behind a cancel."""
    early: bool = False
    """Whether it is called only where the flow is left early."""
    in_task: bool = False
    """Whether it is called in a task that is cancelled then: a CancelledError can't be told from that."""
    python_swallows: tuple[str, ...] = ()
    """The kinds of which Python itself says nothing, when it is called early."""
    lasting: Callable[[Code], AnyFlow] | None = None
    """Makes a flow that waits for ever, where ``build`` in an endless cell does not."""
    not_kinds: tuple[str, ...] = ()
    """The kinds that have a meaning of their own in this place."""

    def __str__(self) -> str:
        return f"{self.method}.{self.parameter}"


PLACES: list[Place] = []


def flow(method: str, parameter: str, build: Callable[[Code], AnyFlow], **more: Any) -> None:
    """Enter a place in a flow."""
    PLACES.append(Place(method, parameter, build, **more))


def end(method: str, parameter: str, run: Callable[[Code], Awaitable[object]], **more: Any) -> None:
    """Enter a place in an end."""
    PLACES.append(Place(method, parameter, end=run, **more))


def followed(build: Callable[[Code], AnyFlow]) -> Callable[[Code], AnyFlow]:
    """Have a source that can't wait be followed by one that does."""
    return lambda code: build(code).concat(Flow.never())


def held(build: Callable[[Code], AnyFlow]) -> Callable[[Code], AnyFlow]:
    """Have a source held open by what is made of its first element, which waits for ever."""
    return lambda code: build(code).concat_map(lambda _: Flow.never())


@frozen(eq=False)
class Passing(Stage[Any, Any]):
    """A stage of a user's own, with one method that raises."""

    code: Code
    bad: str

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        """Pass on."""
        self._go("apply")
        for item in items:
            self._go("apply, in the middle")
            yield item

    def finish(self) -> Iterator[Any]:
        """Give nothing more."""
        self._go("finish")
        return iter(())

    def close(self) -> None:
        """Let go."""
        self._go("close")

    def transform(self) -> Passing:
        """Give the stage itself."""
        self._go("transform")
        return self


class BadRandom(random.Random):
    """A source of chance that raises."""

    code: Code

    def random(self) -> float:
        """Give a number."""
        self.code.trip()
        return 0.5


def bad_random(code: Code) -> BadRandom:
    """Make one."""
    made = BadRandom(1)
    made.code = code
    return made


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


flow("from_callback", "register's unregister", emitting, cleanup=True)
flow("from_callback", "Emitter.error", failing_emitter)


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
    """Give the flow of a producer."""

    async def producer(emit: Any) -> None:
        await produce(code, emit)

    return Flow.create(producer)


flow("create", "producer", lambda code: creating(code, emit_and_raise))
flow("create", "producer's finally", lambda code: creating(code, emit_and_clean_up), cleanup=True, in_task=True)


def of_generator(code: Code) -> AnyFlow:
    """Give the flow of a generator with a ``finally`` that raises."""
    return Flow.from_iterable(code.generator(finally_=True))


def iterating(bad: str) -> Callable[[Code], AnyFlow]:
    """Give the flow of an iterable that raises in one method."""
    return lambda code: Flow.from_iterable(Items(code, bad))


flow("from_iterable", "generator", lambda code: Flow.from_iterable(code.generator()), lasting=held(
    lambda code: Flow.from_iterable(code.generator())))
flow(
    "from_iterable",
    "generator's finally",
    of_generator,
    cleanup=True,
    python_swallows=("GeneratorExit", "StopIteration"),
    lasting=held(of_generator),
)
flow("from_iterable", "__iter__", iterating("__iter__"), lasting=held(iterating("__iter__")))
flow("from_iterable", "__next__", iterating("__next__"), lasting=held(iterating("__next__")), not_kinds=("StopIteration",))
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
        python_swallows=("GeneratorExit", "StopAsyncIteration"),
    )
for method in ("__aiter__", "__anext__"):
    flow(
        "from_async_iterable",
        method,
        lambda code, method=method: Flow.from_async_iterable(Items(code, method)),
        not_kinds=("StopAsyncIteration",) if method == "__anext__" else (),
    )
flow("generate", "step", lambda code: Flow.generate(0, code.calls(lambda at: (at, at + 1))), lasting=held(
    lambda code: Flow.generate(0, code.calls(lambda at: (at, at + 1)))))

for method, hears in (("subscribe", "any"), ("request", "any"), ("cancel", "any")):
    flow(
        "from_publisher",
        f"publisher's {method}",
        lambda code, method=method: Flow.from_publisher(Contract(code, method)),
        hears="end",
        cleanup=method == "cancel",
        early=method == "cancel",
    )


def using(code: Code, kind: Any, bad: str) -> AnyFlow:
    """Give a flow that holds a resource."""
    return Flow.using(lambda: kind(code, bad), lambda _: code.numbers())


flow("using", "resource", lambda code: Flow.using(code.calls(lambda: Resource(code, "")), lambda _: code.numbers()))
flow("using", "fn", lambda code: Flow.using(lambda: Resource(code, ""), code.calls(lambda _: code.numbers())))
flow("using", "fn, of an async resource", lambda code: Flow.using(
    lambda: AsyncResource(code, ""), code.calls(lambda _: code.numbers())))
for kind, name in ((Resource, "__{}__"), (AsyncResource, "__a{}__")):
    flow("using", name.format("enter"), lambda code, kind=kind: using(code, kind, "enter"))
    flow(
        "using", name.format("exit"), lambda code, kind=kind: using(code, kind, "exit"), cleanup=True,
        in_task=kind is AsyncResource,
    )

# -- transforming and filtering


def by_function(method: str, parameter: str, apply: Callable[[AnyFlow, Any], AnyFlow], gives: Any, **more: Any) -> None:
    """Enter a function that is called for an element."""
    flow(method, parameter, lambda code: apply(code.numbers(), code.calls(gives)), **more)


by_function("map", "fn", lambda flow, fn: flow.map(fn), lambda item: item)
by_function("map_not_none", "fn", lambda flow, fn: flow.map_not_none(fn), lambda item: item)
by_function("filter", "predicate", lambda flow, fn: flow.filter(fn), lambda _: True)
by_function("take_while", "predicate", lambda flow, fn: flow.take_while(fn), lambda _: True)
by_function("take_until", "predicate", lambda flow, fn: flow.take_until(fn), lambda _: False)
by_function("skip_while", "predicate", lambda flow, fn: flow.skip_while(fn), lambda _: False)
by_function("distinct", "key", lambda flow, fn: flow.distinct(fn), lambda item: item)
by_function("distinct_until_changed", "key", lambda flow, fn: flow.distinct_until_changed(fn), lambda item: item)
by_function("distinct_until_changed", "comparer", lambda flow, fn: flow.distinct_until_changed(None, fn), lambda *_: False)
by_function("sample_fraction", "key", lambda flow, fn: flow.sample_fraction(1.0, key=fn), lambda item: item)
by_function("scan", "fn", lambda flow, fn: flow.scan(fn), lambda total, _: total)
by_function("scan", "fn, from a start", lambda flow, fn: flow.scan(fn, 0), lambda total, _: total)
by_function("sort_by", "key", lambda flow, fn: flow.sort_by(fn), lambda item: item)
by_function("handle", "fn", lambda flow, fn: flow.handle(fn), lambda item, sink: sink.next(item))
by_function("map_batches", "fn", lambda flow, fn: flow.map_batches(fn, 1), lambda items: items)
by_function("flat_map_iterable", "fn", lambda flow, fn: flow.flat_map_iterable(fn), lambda item: (item,))
by_function("buffer_until_changed", "key", lambda flow, fn: flow.buffer_until_changed(fn), lambda item: item)
flow(
    "flat_map_iterable",
    "fn's generator",
    lambda code: code.numbers().flat_map_iterable(lambda _: code.generator()),
)
flow(
    "flat_map_iterable",
    "fn's generator's finally",
    lambda code: code.numbers().flat_map_iterable(lambda _: code.generator(finally_=True)),
    cleanup=True,
    python_swallows=("GeneratorExit", "StopIteration"),
    lasting=held(lambda code: Flow.of(0, 1).flat_map_iterable(lambda _: code.generator(finally_=True))),
)
flow("flat_map_iterable", "fn's __iter__", lambda code: code.numbers().flat_map_iterable(lambda _: Items(code, "__iter__")))
flow(
    "flat_map_iterable",
    "fn's __next__",
    lambda code: code.numbers().flat_map_iterable(lambda _: Items(code, "__next__")),
    not_kinds=("StopIteration",),
)
flow("map_batches", "fn's generator", lambda code: code.numbers().map_batches(lambda _: code.generator(), 1))
for method in ("transform", "apply", "apply, in the middle", "finish"):
    flow("then", f"stage's {method}", lambda code, method=method: code.numbers().then(Passing(code, method)))
flow("then", "stage's close", lambda code: code.numbers().then(Passing(code, "close")), cleanup=True)

# -- awaiting

for name, order in (("fn", "input"), ("fn, by completion", "completion"), ("fn, by key", lambda _: "key")):
    flow(
        "map_async",
        name,
        lambda code, order=order: code.numbers().map_async(code.awaits(lambda item: item), 2, order=order),
    )
flow("map_async", "fn, one at a time", lambda code: code.numbers().map_async(code.awaits(lambda item: item), 1))
flow("map_async", "fn, when it is called", lambda code: code.numbers().map_async(code.calls(), 2), lasting=followed(
    lambda code: code.numbers().map_async(identity, 2)))
flow("map_async", "order", lambda code: code.numbers().map_async(identity, 2, order=code.calls(lambda item: item)))
flow("filter_when", "predicate", lambda code: code.numbers().filter_when(code.awaits(lambda _: True)))
flow("filter_when", "predicate, two at a time", lambda code: code.numbers().filter_when(code.awaits(lambda _: True), 2))


async def identity(item: Any) -> Any:
    """Give the element, a turn later."""
    await asyncio.sleep(0)
    return item


async def cleaning_up(code: Code, item: Any) -> Any:
    """Wait for ever; or fail with another error, for the second element."""
    if item and not code.endless:
        await asyncio.sleep(0)
        raise code.first
    try:
        await asyncio.Event().wait()
    finally:
        code.trip()


for method in ("map_async", "filter_when"):
    flow(
        method,
        "another call's finally",
        lambda code, method=method: getattr(code.numbers(), method)(lambda item: cleaning_up(code, item), 2),
        hears="first and hook",
        cleanup=True,
        in_task=True,
    )

# -- flattening

for method in ("flat_map", "concat_map", "concat_map_eager", "switch_map", "exhaust_map"):
    by_function(method, "fn", lambda flow, fn, method=method: getattr(flow, method)(fn), lambda item: Flow.of(item))
    flow(
        method,
        "fn's flow",
        lambda code, method=method: getattr(code.numbers(0), method)(lambda _: Flow.from_iterable(code.generator())),
    )
    flow(
        method,
        "fn's async flow",
        lambda code, method=method: getattr(code.numbers(0), method)(
            lambda _: Flow.from_async_iterable(code.async_generator())
        ),
    )
    flow(
        method,
        "fn's flow's finally",
        lambda code, method=method: getattr(code.numbers(0), method)(
            lambda _: Flow.from_async_iterable(code.async_generator(finally_=True))
        ),
        cleanup=True,
        in_task=True,
        python_swallows=("GeneratorExit", "StopAsyncIteration"),
    )

# -- combining: in a flow beside


def beside(method: str) -> AnyFlow:
    """Give a flow for an operator that reads others beside it."""
    if method == "race":
        return Flow.never()
    return Flow.range(9) if method in {"zip", "combine_latest"} else Flow.empty()


for method in ("concat", "concat_eager", "merge", "zip", "combine_latest", "race"):
    flow(
        method,
        "others",
        lambda code, method=method: getattr(
            beside(method), method
        )(code.numbers().map(code.calls(lambda item: item))),
    )
    flow(
        method,
        "others' finally",
        lambda code, method=method: getattr(
            beside(method), method
        )(Flow.from_async_iterable(code.async_generator(finally_=True))),
        cleanup=True,
        in_task=True,
        python_swallows=("GeneratorExit", "StopAsyncIteration"),
    )
flow("merge", "others, errors delayed", lambda code: Flow.of(5).merge(
    code.numbers().map(code.calls(lambda item: item)), delay_errors=True))
flow("with_latest_from", "other", lambda code: Flow.never().with_latest_from(code.numbers().map(code.calls(lambda n: n))))
flow("take_until_other", "other", lambda code: Flow.never().take_until_other(
    code.numbers(0).filter(code.calls(lambda _: False))))
flow("switch_if_empty", "other", lambda code: Flow.empty().switch_if_empty(code.numbers().map(code.calls(lambda n: n))))
flow("timeout", "fallback", lambda code: Flow.never().timeout(SOON, code.numbers().map(code.calls(lambda n: n))))

# -- windowing

flow("group_by", "key", lambda code: code.numbers().group_by(code.calls(lambda n: n)).flat_map(lambda group: group))
flow("group_by", "a group's reader", lambda code: code.numbers().group_by(lambda n: n).flat_map(
    lambda group: group.map(code.calls(lambda n: n))))
flow("group_by", "source", lambda code: code.numbers().map(code.calls(lambda n: n)).group_by(lambda n: n).flat_map(
    lambda group: group))
flow("window", "a window's reader", lambda code: code.numbers().window(2).concat_map(
    lambda window: window.map(code.calls(lambda n: n))))

# -- recovering

flow("on_error_map", "fn", lambda code: code.failing().on_error_map(code.calls(lambda error: error)))
flow("on_error_resume_next", "fallback", lambda code: code.failing().on_error_resume_next(code.calls(lambda _: Flow.never())))
flow("on_error_resume_next", "fallback's flow", lambda code: code.failing().on_error_resume_next(
    lambda _: Flow.from_iterable(code.generator())))
flow("retry_if", "predicate", lambda code: code.failing().retry_if(code.calls(lambda *_: False)))
flow("retry_when", "decide", lambda code: code.failing().retry_when(code.awaits(lambda *_: False)))
flow("repeat_when", "decide", lambda code: code.numbers().repeat_when(code.awaits(lambda *_: False)))
flow("retry_backoff", "resume", lambda code: code.failing().retry_backoff(2, 0.0, resume=code.calls()))
flow("retry_backoff", "random", lambda code: code.failing().retry_backoff(2, SOON, random=bad_random(code)))

# -- observing

by_function("do_on_next", "fn", lambda flow, fn: flow.do_on_next(fn), lambda _: None)
by_function("do_on_complete", "fn", lambda flow, fn: flow.do_on_complete(fn), lambda: None)
by_function("do_on_subscribe", "fn", lambda flow, fn: flow.do_on_subscribe(fn), lambda: None)
by_function("do_on_request", "fn", lambda flow, fn: flow.do_on_request(fn), lambda _: None)
by_function("do_on_cancel", "fn", lambda flow, fn: flow.do_on_cancel(fn), lambda: None, cleanup=True, early=True)
by_function("do_finally", "fn", lambda flow, fn: flow.do_finally(fn), lambda: None, cleanup=True)
flow("do_on_error", "fn", lambda code: code.failing().do_on_error(code.calls()))
flow("on_discard", "fn", lambda code: discarding(code).on_discard(code.calls()), hears="first and hook")


def discarding(code: Code) -> AnyFlow:
    """Give a flow that discards an element, and fails."""
    return code.failing().buffer(2)


# -- overflow

for method, more in (
    ("on_backpressure_drop", {}),
    ("on_backpressure_latest", {}),
    ("on_backpressure_buffer", {"size": 1, "overflow": "drop_oldest"}),
    ("on_backpressure_buffer", {"size": 1, "overflow": "drop_latest"}),
):
    flow(
        method,
        f"on_drop {more.get('overflow', '')}".strip(),
        lambda code, method=method, more=more: getattr(
            Flow.of(*range(9)).concat(Flow.never()) if code.endless else Flow.range(9), method
        )(**more, on_drop=code.calls()).map_async(identity, 1),
    )

# -- special methods of elements


def elements(code: Code, bad: str, *, truth: bool = True) -> AnyFlow:
    """Give a source of elements with one bad method."""
    return code.numbers(*(Element(code, bad, value, truth) for value in (0, 0, 1)))


for parameter, method, bad, apply in (
    ("an element's __hash__", "distinct", "__hash__", lambda flow: flow.distinct()),
    ("an element's __eq__", "distinct", "__eq__", lambda flow: flow.distinct()),
    ("an element's __eq__", "distinct_until_changed", "__eq__", lambda flow: flow.distinct_until_changed()),
    ("an element's __eq__", "buffer_until_changed", "__eq__", lambda flow: flow.buffer_until_changed()),
    ("an element's __lt__", "sort_by", "__lt__", lambda flow: flow.sort_by()),
    ("a key's __hash__", "group_by", "__hash__", lambda flow: flow.group_by(lambda item: item).flat_map(lambda group: group)),
    ("an answer's __bool__", "filter", "__bool__", lambda flow: flow.filter(lambda item: item)),
    ("an answer's __bool__", "take_while", "__bool__", lambda flow: flow.take_while(lambda item: item)),
    ("an answer's __bool__", "skip_while", "__bool__", lambda flow: flow.skip_while(lambda item: item)),
    ("an answer's __bool__", "filter_when", "__bool__", lambda flow: flow.filter_when(identity)),
    ("an answer's __iter__", "flat_map_iterable", "__iter__", lambda flow: flow.flat_map_iterable(lambda item: item)),
    ("an answer's __iter__", "map_batches", "__iter__", lambda flow: flow.map_batches(lambda items: items[0], 2)),
    ("a key's __hash__", "map_async", "__hash__", lambda flow: flow.map_async(identity, 2, order=lambda item: item)),
):
    flow(method, parameter, lambda code, bad=bad, apply=apply: apply(elements(code, bad)))
flow("take_until", "an answer's __bool__", lambda code: elements(code, "__bool__", truth=False).take_until(lambda item: item))
flow("retry_if", "an answer's __bool__", lambda code: code.failing().retry_if(lambda *_: Element(code, "__bool__")))
flow("retry_when", "an answer's __bool__", lambda code: code.failing().retry_when(lambda *_: identity(Element(code, "__bool__"))))

# -- the repr of an element, wanted for a note on another failure

for method in ("map", "filter", "take_while", "do_on_next", "flat_map_iterable", "flat_map", "concat_map", "switch_map"):
    flow(
        method,
        "the element's __repr__, for a note",
        lambda code, method=method: getattr(elements(code, "__repr__"), method)(code.fails),
        hears="first",
        lasting=lambda code: elements(code, "").concat(Flow.never()),
    )


async def fails_later(code: Code) -> Any:
    """Fail as upstream does, a turn later."""
    await asyncio.sleep(0)
    raise code.first


for method in ("map_async", "filter_when"):
    flow(
        method,
        "the element's __repr__, for a note",
        lambda code, method=method: getattr(elements(code, "__repr__"), method)(lambda _: fails_later(code), 2),
        hears="first",
        lasting=lambda code: elements(code, "").concat(Flow.never()),
    )
flow(
    "of",
    "an argument's __repr__, for a note",
    lambda code: Flow.of(Element(code, "__repr__")).map(code.fails),
    hears="first",
    lasting=lambda _: Flow.never(),
)

# -- ends

end("for_each", "fn", lambda code: code.numbers().for_each(code.calls()))
end("for_each", "fn, async", lambda code: code.numbers().for_each(code.awaits()))
end("for_each", "fn, async, two at a time", lambda code: code.numbers().for_each(code.awaits(), concurrency=2))
end("reduce", "fn", lambda code: code.numbers().reduce(code.calls()))
end("reduce", "fn, associative", lambda code: code.numbers().reduce(code.calls(), associative=True))
end("fold", "fn", lambda code: code.numbers().fold(0, code.calls()))
end("fold", "fn, with combine", lambda code: code.numbers().fold(0, code.calls(), combine=max))
end("collect", "factory", lambda code: code.numbers().collect(code.calls(list), list.append))
end("collect", "accumulate", lambda code: code.numbers().collect(list, code.calls()))
end("to_dict", "key", lambda code: code.numbers().to_dict(code.calls(lambda item: item)))
end("to_dict", "value", lambda code: code.numbers().to_dict(str, code.calls()))
end("min", "key", lambda code: code.numbers().min(key=code.calls(lambda item: item)))
end("max", "key", lambda code: code.numbers().max(key=code.calls(lambda item: item)))
end("top_k", "key", lambda code: code.numbers().top_k(2, key=code.calls(lambda item: item)))
end("to_sorted_list", "key", lambda code: code.numbers().to_sorted_list(key=code.calls(lambda item: item)))
end("count_by_key", "key", lambda code: code.numbers().count_by_key(code.calls(lambda item: item)))
end("fold_by_key", "key", lambda code: code.numbers().fold_by_key(code.calls(lambda item: item), 0, max))
end("fold_by_key", "fn", lambda code: code.numbers().fold_by_key(str, 0, code.calls()))
end("all", "predicate", lambda code: code.numbers().all(code.calls(lambda _: True)))
end("any", "predicate", lambda code: code.numbers().any(code.calls(lambda _: False)))
end("to_set", "an element's __hash__", lambda code: elements(code, "__hash__").to_set())
end("to_sorted_list", "an element's __lt__", lambda code: elements(code, "__lt__").to_sorted_list())
end("top_k", "an element's __lt__", lambda code: elements(code, "__lt__").top_k(1))
end("min", "an element's __lt__", lambda code: elements(code, "__lt__").min())
end("max", "an element's __lt__", lambda code: elements(code, "__lt__").max())
end("contains", "an element's __eq__", lambda code: elements(code, "__eq__").contains(Element(code, "", 9)))
end("sum", "an element's __add__", lambda code: elements(code, "__add__").sum())
end("all", "an answer's __bool__", lambda code: elements(code, "__bool__").all(lambda item: item))
end("any", "an answer's __bool__", lambda code: elements(code, "__bool__", truth=False).any(lambda item: item))
end("count_by_key", "a key's __hash__", lambda code: elements(code, "__hash__").count_by_key(lambda item: item))


async def run_sync(code: Code) -> object:
    """Have the end of ``run_sync`` raise."""
    from tests.failures.ends import blocking

    return await blocking(lambda: code.numbers().run_sync(code.awaits()))


end("run_sync", "end", run_sync, lasting=lambda code: code.numbers())


async def left_by_error(code: Code) -> object:
    """Have the block of ``open()`` raise."""
    async with code.numbers().open() as items:
        async for _ in items:
            code.trip()
    return None


end("open", "block", left_by_error)

NO_PLACE: Final = {
    "collect.combine": "is called on Spark only; see tests/spark",
    "fold.combine": "likewise",
    "fold_by_key.combine": "likewise",
    "to_spark.progress": "is called on Spark only",
    "from_spark.context": "takes variables, and calls nothing",
    "through.operator": "is called when the flow is built, and raises there",
    "subscribe.subscriber": "see test_subscribers.py in this folder",
    "then.stage": "its methods are entered, each by its name",
    "from_publisher.publisher": "likewise",
    "from_iterable.items": "likewise",
    "from_async_iterable.items": "likewise",
}
"""Parameters that take something of a user's, have no place of their name, and why."""
