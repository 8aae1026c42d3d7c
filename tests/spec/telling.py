"""Traces told by hand: a call is written with the calls that were made inside of it."""

from __future__ import annotations

from itertools import count
from typing import Any

from attrs import field, frozen

from reactive_aio.spec.trace import Facts, Identity, Kind, Signal, Trace

NOBODY = Identity(0, "NoneType")
"""How a trace shows a None in the place of a subscriber or a subscription."""


@frozen
class Told:
    """A call, or a pause of everything."""

    kind: Kind
    value: Any = None
    inner: tuple[Told, ...] = ()
    stream: int = 1
    link: int = 1
    thread: int = 1
    loop: int | None = 1
    raises: BaseException | None = None
    seconds: float = 0.0
    lasts: bool = field(default=False, kw_only=True)
    """Whether the call was still under way when the trace was taken."""


def subscribe(who: Any = "<subscriber>", *inner: Told, **more: Any) -> Told:
    return Told(Kind.SUBSCRIBE, who, inner, **more)


def on_subscribe(*inner: Told, value: Any = "<subscription>", **more: Any) -> Told:
    return Told(Kind.ON_SUBSCRIBE, value, inner, **more)


def on_next(item: Any = "item", *inner: Told, **more: Any) -> Told:
    return Told(Kind.ON_NEXT, item, inner, **more)


def on_error(error: Any, *inner: Told, **more: Any) -> Told:
    return Told(Kind.ON_ERROR, error, inner, **more)


def on_complete(*inner: Told, **more: Any) -> Told:
    return Told(Kind.ON_COMPLETE, None, inner, **more)


def request(n: Any, *inner: Told, **more: Any) -> Told:
    return Told(Kind.REQUEST, n, inner, **more)


def cancel(*inner: Told, **more: Any) -> Told:
    return Told(Kind.CANCEL, None, inner, **more)


def rest() -> Told:
    return Told(Kind.REST, stream=0, link=0)


def trace(*told: Told, **facts: Any) -> Trace:
    """Write down what was told; what another thread does inside of a call is not called from there."""
    signals: list[Signal] = []
    places = count()

    def write(each: Told, outer: tuple[int, int] | None, clock: float) -> float:
        at = next(places)
        within = outer[0] if outer is not None and outer[1] == each.thread else None
        common: dict[str, Any] = {
            "stream": each.stream,
            "link": each.link,
            "within": within,
            "thread": each.thread,
            "loop": each.loop,
            "call": at,
        }
        signals.append(Signal(at, each.kind, value=each.value, clock=clock, **common))
        if each.kind is Kind.REST:
            return clock
        for inner in each.inner:
            write(inner, (at, each.thread), clock)
        clock += each.seconds
        if not each.lasts:
            end = Kind.RETURNED if each.raises is None else Kind.RAISED
            signals.append(Signal(next(places), end, value=each.raises, clock=clock, **common))
        return clock

    clock = 0.0
    for each in told:
        clock = write(each, None, clock)
    return Trace(tuple(signals), Facts(**facts))
