"""The rules of chapter 3, about subscriptions."""

from __future__ import annotations

from ..._core.guard import shown
from ..demand import UNBOUNDED
from ..trace import ASKING, SIGNALS, TERMINALS, Call, Stream, Trace, is_demand
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
    on_trace,
    raising,
    slow,
    unmet,
)


@on_stream("3.1")
def _(stream: Stream, trace: Trace) -> Finding:
    home = next((call.entry.loop for call in stream.of(ON_SUBSCRIBE)), None)
    for call in stream.of(REQUEST):  # cancel may come from any thread (rule 3.5)
        if home is not None and call.entry.loop != home:
            return f"{call.kind.value} (#{call.at}) on thread {call.entry.thread}, away from the subscriber's loop"
    return None


@on_stream("3.2")
def _(stream: Stream, trace: Trace) -> Finding:
    asked = stream.of(REQUEST)
    within = [call for call in asked if inside(call, trace, frozenset({ON_NEXT, ON_SUBSCRIBE}))]
    if not within or len(within) < len(asked):
        return None
    return raising(within, "inside a signal") or unmet(stream, trace, "requested from inside signals")


@on_stream("3.3")
def _(stream: Stream, trace: Trace) -> Finding:
    for call in stream.of(ON_NEXT):
        nested = [each for each in trace.around(call) if each.kind is ON_NEXT and each.entry.stream == stream.number]
        if len(nested) >= trace.facts.depth:
            levels = f"{len(nested) + 1} calls of on_next inside each other"
            return f"{levels} (#{call.at}), {call.entry.depth} frames on the stack; the bound is {trace.facts.depth}"
    return None


@on_stream("3.4")
def _(stream: Stream, trace: Trace) -> Finding:
    return slow(stream.of(REQUEST), trace)


@on_trace("3.5")
def _(trace: Trace) -> Finding:
    calls = [call for stream in trace.streams for call in stream.of(CANCEL)]
    home = next((call.entry.thread for stream in trace.streams for call in stream.of(ON_SUBSCRIBE)), None)
    away = [call for call in calls if call.entry.thread != home]
    return slow(calls, trace) or raising(away, "on another thread")


@on_stream("3.6")
def _(stream: Stream, trace: Trace) -> Finding:
    cancelled = stream.cancelled
    if cancelled is None:
        return None
    asked = [call for call in stream.after(cancelled.at) if call.kind is REQUEST]
    for call in stream.after(asked[0].at) if asked else ():
        if call.kind in SIGNALS and trace.rested(cancelled.at, asked[0].at):
            return f"request after cancel had an effect: {call.kind.value} (#{call.at})"
    return straggler(stream, trace) or raising(asked, "after cancel")


@on_stream("3.7")
def _(stream: Stream, trace: Trace) -> Finding:
    again = [call for call in stream.of(CANCEL) if call.entry.link == stream.link][1:]
    home = next((call.entry.thread for call in stream.of(ON_SUBSCRIBE)), None)
    for call in stream.after(again[0].at) if again else ():
        if call.kind in SIGNALS and _rested(trace, stream, again[0]):
            return f"cancel after cancel had an effect: {call.kind.value} (#{call.at})"
    return straggler(stream, trace) or raising(
        (call for call in again if call.entry.thread == home), "when it was called again"
    )


@on_stream("3.8")
def _(stream: Stream, trace: Trace) -> Finding:
    asked = stream.of(REQUEST)
    if trace.facts.at_rest and stream.requested() < trace.facts.asked:
        return f"a demand of {stream.requested()} was registered of the {trace.facts.asked} that were asked for"
    if len(asked) < 2:
        return None
    within = [call for call in stream.of(ON_NEXT) if call.at > asked[1].at]
    words = f"after requests of {' + '.join(str(call.value) for call in asked)}"
    return raising(within, words) or unmet(stream, trace, words)


@on_stream("3.9")
def _(stream: Stream, trace: Trace) -> Finding:
    for call in stream.of(REQUEST):
        over = [each for each in (stream.cancelled, stream.terminal) if each is not None and each.at < call.at]
        if is_demand(call.value) or over:
            continue
        if trace.facts.at_rest and not stream.of(ON_ERROR):
            return f"request({shown(call.value)}) (#{call.at}) was not answered by on_error"
        error = stream.of(ON_ERROR)[0].value if stream.of(ON_ERROR) else None
        if error is not None and not isinstance(error, ValueError | TypeError):
            return f"request({shown(call.value)}) was answered by {shown(error)}, which is neither ValueError nor TypeError"
    return None


@on_stream("3.10")
def _(stream: Stream, trace: Trace) -> Finding:
    sync = [call for call in stream.of(ON_NEXT) if inside(call, trace, frozenset({REQUEST}))]
    return raising(sync, "from inside its own request")


@on_stream("3.11")
def _(stream: Stream, trace: Trace) -> Finding:
    sync = [call for call in stream.of(ON_ERROR, ON_COMPLETE) if inside(call, trace, frozenset({REQUEST}))]
    return raising(sync, "from inside its own request")


@on_stream("3.12")
def _(stream: Stream, trace: Trace) -> Finding:
    cancelled = stream.cancelled
    if found := straggler(stream, trace):
        return found
    if cancelled is None or not trace.facts.at_rest or trace.facts.elements is None:
        return None
    early = len([call for call in stream.of(ON_NEXT) if call.at < cancelled.at])
    left = min(stream.requested(cancelled.at), trace.facts.elements) - early
    late = stream.delivered - early
    return f"cancel stopped nothing: the {left} elements still wanted all came" if 0 < left <= late else None


@on_stream("3.13")
def _(stream: Stream, trace: Trace) -> Finding:
    kept = stream.cancelled is not None and trace.facts.released is False
    return "the publisher still refers to the subscriber after cancel" if kept else None


@on_trace("3.14")
def _(trace: Trace) -> Finding:
    ended: int | None = None
    for stream in trace.streams:
        begun = stream.calls[0].at
        if ended is not None and begun > ended and trace.facts.at_rest and not trace.facts.done:
            silent = not stream.of(ON_SUBSCRIBE) or (stream.requested() and not stream.items and not stream.terminal)
            if silent:
                return f"stream {stream.number}, begun after another was cancelled, got neither elements nor an end"
        if stream.cancelled is not None:
            ended = stream.cancelled.at
            late = [call for call in stream.after(ended) if call.kind in TERMINALS]
            quiet = [call for call in late if not inside(call, trace, ASKING)]
            if found := raising(quiet, "after the publisher was shut down by cancel"):
                return found
    return None


@on_stream("3.15")
def _(stream: Stream, trace: Trace) -> Finding:
    calls = stream.of(CANCEL)
    home = next((call.entry.thread for call in stream.of(ON_SUBSCRIBE)), None)
    return raising((call for call in calls[:1] if call.entry.thread == home), "")


@on_stream("3.16")
def _(stream: Stream, trace: Trace) -> Finding:
    before = [each.at for each in (stream.cancelled, stream.terminal) if each is not None]
    return raising((call for call in stream.of(REQUEST) if not before or call.at < min(before)), "")


@on_stream("3.17")
def _(stream: Stream, trace: Trace) -> Finding:
    asked = [call for call in stream.of(REQUEST) if is_demand(call.value)]
    if max((call.value for call in asked), default=0) < UNBOUNDED // 2:
        return None
    failed = stream.of(ON_ERROR)
    if failed and not trace.facts.fails:
        return f"a demand of {stream.requested()} was answered by on_error({shown(failed[0].value)})"
    return raising(asked, "") or unmet(stream, trace, f"for a demand of {stream.requested()}")


def straggler(stream: Stream, trace: Trace) -> Finding:
    """Report a signal after a cancel at rest, when no demand was open."""
    cancelled = stream.cancelled
    if cancelled is None:
        return None
    before = [call for call in stream.calls if call.at < cancelled.at]
    delivered = trace.facts.delivered_before + len([call for call in before if call.kind is ON_NEXT])
    at_rest = trace.rested(max((call.at for call in before), default=0), cancelled.at)
    late = [call for call in stream.after(cancelled.at) if call.kind in SIGNALS]
    if not late or not at_rest or delivered < stream.requested(cancelled.at):
        return None
    return f"{late[0].kind.value} (#{late[0].at}) after cancel, when nothing was wanted and nothing under way"


def _rested(trace: Trace, stream: Stream, call: Call) -> bool:
    """Return whether everything was at rest between the first cancel of a stream and another call."""
    return stream.cancelled is not None and trace.rested(stream.cancelled.at, call.at)
