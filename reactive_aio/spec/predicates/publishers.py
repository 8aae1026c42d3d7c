"""The rules of chapter 1, about publishers."""

from __future__ import annotations

from ..._core.guard import shown
from ..trace import ASKING, SIGNALS, TERMINALS, Stream, Trace, is_demand
from .judging import (
    ON_ERROR,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    SUBSCRIBE,
    Finding,
    altered,
    inside,
    on_stream,
    on_trace,
    outcome,
    raising,
)


@on_stream("1.1")
def _(stream: Stream, trace: Trace) -> Finding:
    delivered = trace.facts.delivered_before
    for call in stream.of(ON_NEXT):
        delivered += 1
        requested = stream.requested(call.at)
        if delivered > requested:
            return f"{delivered} elements for a demand of {requested} (#{call.at})"
    return None


@on_stream("1.2")
def _(stream: Stream, trace: Trace) -> Finding:
    elements = trace.facts.elements
    if not _unended(stream, trace) or not elements or stream.requested(_last(stream)) <= elements:
        return None
    return f"all {elements} elements came, but no end, while more was wanted: it seems to wait for what nobody has"


def _unended(stream: Stream, trace: Trace) -> bool:
    """Return whether all elements have come but not the end."""
    elements, over = trace.facts.elements, stream.cancelled is not None or stream.terminal is not None
    return trace.facts.at_rest and not over and elements is not None and stream.delivered >= elements


def _last(stream: Stream) -> int:
    """Return the place of the last element, or of the beginning."""
    return max((call.at for call in stream.of(ON_NEXT, ON_SUBSCRIBE)), default=0)


@on_stream("1.3")
def _(stream: Stream, trace: Trace) -> Finding:
    signals = stream.signals
    for place, call in enumerate(signals):
        for earlier in signals[:place]:
            if not earlier.open_at(call.at):
                continue
            if earlier.entry.thread != call.entry.thread:
                threads = f"threads {earlier.entry.thread} and {call.entry.thread}"
                return f"{call.kind.value} (#{call.at}) during {earlier.kind.value} (#{earlier.at}), {threads}"
            if inside(call, trace, ASKING | SIGNALS) is earlier:
                return f"{call.kind.value} (#{call.at}) from inside {earlier.kind.value} (#{earlier.at})"
    return None


@on_stream("1.4")
def _(stream: Stream, trace: Trace) -> Finding:
    if not trace.facts.fails or not trace.facts.at_rest or stream.cancelled:
        return None
    if stream.of(ON_ERROR):
        return altered(stream, trace)
    instead = raising(stream.of(SUBSCRIBE, REQUEST), "instead")
    return f"no on_error from a publisher that fails; {instead or 'nothing came in its place'}"


@on_stream("1.5")
def _(stream: Stream, trace: Trace) -> Finding:
    elements, terminal = trace.facts.elements, stream.terminal
    again = [call for call in stream.after(_last(stream)) if call.kind is REQUEST]
    if _unended(stream, trace) and again:
        return f"all {elements} elements came, but no on_complete, even though more was requested (#{again[0].at})"
    if elements is not None and terminal is not None and terminal.kind is ON_ERROR and not trace.facts.fails:
        wrong = any(not is_demand(call.value) for call in stream.of(REQUEST))
        return None if wrong else f"a stream that should end well ended with on_error({shown(terminal.value)})"
    return None


@on_stream("1.6")
def _(stream: Stream, trace: Trace) -> Finding:
    terminal = stream.terminal
    if terminal is None or (stream.cancelled is not None and stream.cancelled.at < terminal.at):
        return None
    later = stream.after(terminal.at)
    asked = [call for call in later if call.kind in ASKING]
    for call in later:
        if call.kind in SIGNALS and asked and asked[0].at < call.at:
            return f"{asked[0].kind.value} after {terminal.kind.value} had an effect: {call.kind.value} (#{call.at})"
    if trace.facts.released is False:
        return f"the publisher still refers to the subscriber after {terminal.kind.value}"
    return raising(asked, f"after {terminal.kind.value}")


@on_stream("1.7")
def _(stream: Stream, trace: Trace) -> Finding:
    terminal = stream.terminal
    for call in () if terminal is None else stream.after(terminal.at):
        if call.kind in ASKING:
            break
        if call.kind in SIGNALS:
            return f"{call.kind.value} (#{call.at}) after {terminal.kind.value} (#{terminal.at})"  # type: ignore[union-attr]
    return None


@on_stream("1.8")
def _(stream: Stream, trace: Trace) -> Finding:
    cancelled = stream.cancelled
    for call in () if cancelled is None else stream.after(cancelled.at):
        if call.kind in ASKING and trace.rested(cancelled.at, call.at):  # type: ignore[union-attr]
            break
        if call.kind in TERMINALS:
            return f"{call.kind.value} (#{call.at}) after cancel (#{cancelled.at})"  # type: ignore[union-attr]
        if call.kind is ON_NEXT and trace.rested(cancelled.at, call.at):  # type: ignore[union-attr]
            return f"the signals had stopped after cancel, then came an element (#{call.at})"
    return None


@on_stream("1.9")
def _(stream: Stream, trace: Trace) -> Finding:
    for call in stream.of(SUBSCRIBE):
        if call.of_none:
            if not isinstance(call.raised, TypeError):
                return f"subscribe(None) did not raise TypeError but {outcome(call)}"
        elif call.raised is not None:
            return f"subscribe raised {shown(call.raised)}: failures are signalled, after on_subscribe"
        elif trace.facts.at_rest and not stream.of(ON_SUBSCRIBE):
            return "subscribe was never answered by on_subscribe"
    if stream.signals and stream.signals[0].kind is not ON_SUBSCRIBE:
        return f"the first signal was {stream.signals[0].kind.value} (#{stream.signals[0].at}), not on_subscribe"
    return None


@on_trace("1.10")
def _(trace: Trace) -> Finding:
    known: dict[object, int] = {}
    for stream in trace.streams:
        for call in stream.of(SUBSCRIBE):
            earlier = known.setdefault(call.value, call.at)
            if earlier != call.at and not trace.facts.provoked:
                return f"{call.value} was used to subscribe in #{earlier} and again in #{call.at}"
            if trace.facts.at_rest and not stream.of(ON_SUBSCRIBE) and len(known) > 1:
                return f"subscriber number {len(known)} heard nothing of its subscription"
    return _stray(trace)


def _stray(trace: Trace) -> Finding:
    """Report elements that one subscriber requested and another got."""
    given = [stream for stream in trace.streams if stream.delivered > stream.requested()]
    waiting = [stream for stream in trace.streams if stream.delivered < stream.wanted and not stream.terminal]
    if not given or not waiting or not trace.facts.at_rest:
        return None
    return f"what was requested in stream {waiting[0].number} was delivered in stream {given[0].number}"


@on_trace("1.11")
def _(trace: Trace) -> Finding:
    first = trace.streams[0] if trace.streams else None
    for other in trace.streams[1:]:
        if not trace.facts.multicast or first is None:
            break
        terminal = other.terminal
        if terminal is not None and terminal.kind is ON_ERROR and not trace.facts.fails:
            return f"stream {other.number} was rejected: {shown(terminal.value)}"
        shared = min(len(first.items), len(other.items))
        if first.items[:shared] != other.items[:shared] or (trace.facts.at_rest and _behind(first, other)):
            return f"the subscribers saw different streams: {shown(first.items)} and {shown(other.items)}"
    return None


def _behind(first: Stream, other: Stream) -> bool:
    same_demand = first.requested() == other.requested() and not first.cancelled and not other.cancelled
    return same_demand and (len(first.items), first.terminal is None) != (len(other.items), other.terminal is None)
