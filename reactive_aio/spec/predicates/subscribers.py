"""The rules of chapter 2, about subscribers."""

from __future__ import annotations

from ..trace import ASKING, SIGNALS, TERMINALS, Call, Kind, Stream, Trace
from .judging import (
    CANCEL,
    ON_COMPLETE,
    ON_ERROR,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    Finding,
    inside,
    on_stream,
    outcome,
    raising,
    slow,
)


@on_stream("2.1")
def _(stream: Stream, trace: Trace) -> Finding:
    waiting = trace.facts.at_rest and stream.of(ON_SUBSCRIBE) and stream.terminal is None and not stream.of(CANCEL)
    return "it was given a subscription and requested nothing" if waiting and not stream.requested() else None


@on_stream("2.2")
def _(stream: Stream, trace: Trace) -> Finding:
    return slow(stream.of(ON_NEXT), trace)


@on_stream("2.3")
def _(stream: Stream, trace: Trace) -> Finding:
    for call in stream.of(REQUEST, CANCEL):
        outer = inside(call, trace, TERMINALS)
        if outer is not None:
            return f"{call.kind.value} (#{call.at}) from inside {outer.kind.value} (#{outer.at})"
    return None


@on_stream("2.4")
def _(stream: Stream, trace: Trace) -> Finding:
    terminal = stream.terminal
    for call in () if terminal is None else stream.after(terminal.at):
        if call.kind in ASKING and call.entry.link == stream.link and inside(call, trace, TERMINALS) is None:
            return f"{call.kind.value} (#{call.at}) after {terminal.kind.value} (#{terminal.at})"  # type: ignore[union-attr]
    return None


@on_stream("2.5")
def _(stream: Stream, trace: Trace) -> Finding:
    for second in stream.of(ON_SUBSCRIBE)[1:]:
        asked = [call for call in stream.of(REQUEST, CANCEL) if call.entry.link == second.entry.link]
        if any(call.kind is REQUEST for call in asked):
            return "it requested from the second subscription"
        if trace.facts.at_rest and not asked:
            return "it did not cancel the second subscription"
        if any(inside(call, trace, SIGNALS) is second for call in stream.of(CANCEL) if call not in asked):
            return "it cancelled the first subscription when the second came"
    return None


@on_stream("2.6")
def _(stream: Stream, trace: Trace) -> Finding:
    over = stream.cancelled is not None or stream.terminal is not None
    idle = trace.facts.done and trace.facts.at_rest and bool(stream.of(ON_SUBSCRIBE))
    return "it needs no more, and did not cancel" if idle and not over else None


@on_stream("2.7")
def _(stream: Stream, trace: Trace) -> Finding:
    asked = stream.of(REQUEST, CANCEL)
    for place, call in enumerate(asked):
        for earlier in asked[:place]:
            if earlier.open_at(call.at) and earlier.entry.thread != call.entry.thread:
                return f"{call.kind.value} (#{call.at}) during {earlier.kind.value} (#{earlier.at}) on another thread"
    return None


@on_stream("2.8")
def _(stream: Stream, trace: Trace) -> Finding:
    cancelled = stream.cancelled
    late = [] if cancelled is None else [call for call in stream.after(cancelled.at) if call.kind is ON_NEXT]
    return raising(late, "after cancel")


@on_stream("2.9")
def _(stream: Stream, trace: Trace) -> Finding:
    return raising(_usual(stream, ON_COMPLETE), f"after a demand of {stream.requested()}")


@on_stream("2.10")
def _(stream: Stream, trace: Trace) -> Finding:
    return raising(_usual(stream, ON_ERROR), f"after a demand of {stream.requested()}")


def _usual(stream: Stream, kind: Kind) -> list[Call]:
    """Return the terminals that came neither from inside request nor after cancel, and were not None."""
    before = None if stream.cancelled is None else stream.cancelled.at
    calls = [call for call in stream.of(kind) if kind is ON_COMPLETE or call.value is not None]
    return [call for call in calls if before is None or call.at < before]


@on_stream("2.12")
def _(stream: Stream, trace: Trace) -> Finding:
    given = stream.of(ON_SUBSCRIBE)
    if len(given) < 2 or trace.facts.provoked:
        return None
    return f"on_subscribe in #{given[0].at} and again in #{given[1].at}"


@on_stream("2.13")
def _(stream: Stream, trace: Trace) -> Finding:
    for call in stream.of(ON_SUBSCRIBE, ON_NEXT, ON_ERROR):
        if not call.of_none:
            continue
        if not trace.facts.provoked:
            return f"{call.kind.value}(None) (#{call.at})"
        if not isinstance(call.raised, TypeError):
            return f"{call.kind.value}(None) did not raise TypeError but {outcome(call)}"
    before = stream.cancelled
    good = [call for call in stream.of(ON_SUBSCRIBE, ON_NEXT) if before is None or call.at < before.at]
    return None if trace.facts.provoked else raising(good, "to its publisher")
