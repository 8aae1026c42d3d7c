"""The places in operators and ends where special methods of elements are called, and functions of ends; see `tests.failures.places`, which takes them in."""

from __future__ import annotations

import asyncio
from typing import Any

from reactive_aio import Flow
from tests.failures.code import AnyFlow, Code, Element
from tests.failures.places import end, flow, identity

# -- special methods of elements


def elements(code: Code, bad: str, *, truth: bool = True) -> AnyFlow:
    """Return a source of elements with one bad method."""
    return code.numbers(*(Element(code, bad, value, truth) for value in (0, 0, 1)))


for parameter, method, bad, apply in (
    ("an element's __hash__", "distinct", "__hash__", lambda flow: flow.distinct()),
    ("an element's __eq__", "distinct", "__eq__", lambda flow: flow.distinct()),
    ("an element's __eq__", "distinct_until_changed", "__eq__", lambda flow: flow.distinct_until_changed()),
    ("an element's __eq__", "buffer_until_changed", "__eq__", lambda flow: flow.buffer_until_changed()),
    ("an element's __lt__", "sort_by", "__lt__", lambda flow: flow.sort_by()),
    (
        "a key's __hash__",
        "group_by",
        "__hash__",
        lambda flow: flow.group_by(lambda item: item).flat_map(lambda group: group),
    ),
    ("an answer's __bool__", "filter", "__bool__", lambda flow: flow.filter(lambda item: item)),
    ("an answer's __bool__", "take_while", "__bool__", lambda flow: flow.take_while(lambda item: item)),
    ("an answer's __bool__", "skip_while", "__bool__", lambda flow: flow.skip_while(lambda item: item)),
    ("an answer's __bool__", "filter_when", "__bool__", lambda flow: flow.filter_when(identity)),
    ("an answer's __iter__", "flat_map_iterable", "__iter__", lambda flow: flow.flat_map_iterable(lambda item: item)),
    ("an answer's __iter__", "map_batches", "__iter__", lambda flow: flow.map_batches(lambda items: items[0], size=2)),
    (
        "a key's __hash__",
        "map_async",
        "__hash__",
        lambda flow: flow.map_async(identity, max_concurrency=2, order=lambda item: item),
    ),
):
    flow(method, parameter, lambda code, bad=bad, apply=apply: apply(elements(code, bad)))
flow(
    "take_until",
    "an answer's __bool__",
    lambda code: elements(code, "__bool__", truth=False).take_until(lambda item: item),
)
flow("retry_if", "an answer's __bool__", lambda code: code.failing().retry_if(lambda *_: Element(code, "__bool__")))
flow(
    "retry_when",
    "an answer's __bool__",
    lambda code: code.failing().retry_when(lambda *_: identity(Element(code, "__bool__"))),
)

# -- the repr of an element, wanted for a note on another failure

for method in (
    "map",
    "filter",
    "take_while",
    "do_on_next",
    "flat_map_iterable",
    "flat_map",
    "concat_map",
    "switch_map",
):
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
        lambda code, method=method: getattr(elements(code, "__repr__"), method)(
            lambda _: fails_later(code), max_concurrency=2
        ),
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
end("for_each_batch", "fn", lambda code: code.numbers().for_each_batch(code.calls(), 2))
end("for_each_batch", "fn, async", lambda code: code.numbers().for_each_batch(code.awaits(), 2))
end("for_each", "fn, async, two at a time", lambda code: code.numbers().for_each(code.awaits(), max_concurrency=2))
end("reduce", "fn", lambda code: code.numbers().reduce(code.calls()))
end("reduce", "fn and combine", lambda code: code.numbers().reduce(code.calls(), combine=code.calls()))
end("reduce", "fn, from a start", lambda code: code.numbers().reduce(code.calls(), 0))
end("reduce", "fn, from a start, with combine", lambda code: code.numbers().reduce(code.calls(), 0, combine=max))
end("collect", "factory", lambda code: code.numbers().collect(code.calls(list), list.append))
end("collect", "accumulate", lambda code: code.numbers().collect(list, code.calls()))
end("to_dict", "key", lambda code: code.numbers().to_dict(code.calls(lambda item: item)))
end("to_dict", "value", lambda code: code.numbers().to_dict(str, value=code.calls()))
end("min", "key", lambda code: code.numbers().min(key=code.calls(lambda item: item)))
end("max", "key", lambda code: code.numbers().max(key=code.calls(lambda item: item)))
end("top_k", "key", lambda code: code.numbers().top_k(2, key=code.calls(lambda item: item)))
end("to_sorted_list", "key", lambda code: code.numbers().to_sorted_list(key=code.calls(lambda item: item)))
end("count_by_key", "key", lambda code: code.numbers().count_by_key(code.calls(lambda item: item)))
end("reduce_by_key", "key", lambda code: code.numbers().reduce_by_key(code.calls(lambda item: item), max, 0))
end("reduce_by_key", "fn", lambda code: code.numbers().reduce_by_key(str, code.calls(), 0))
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
