"""The rules of chapter 4, about processors."""

from __future__ import annotations

from ..._core.guard import shown
from ..trace import Trace
from .judging import ON_ERROR, ON_NEXT, Finding, altered, on_trace


@on_trace("4.1")
def _(trace: Trace) -> Finding:
    facts = trace.facts
    if facts.upstream is None or facts.downstream is None or not facts.at_rest:
        return None
    up, down = trace.stream(facts.upstream), trace.stream(facts.downstream)
    over = any(each is not None for each in (up.terminal, down.terminal, up.cancelled, down.cancelled))
    waiting = down.requested() - down.delivered
    if not over and waiting > 0 and up.requested() <= up.delivered:
        return f"downstream waits for {waiting} elements, but nothing is requested of upstream"
    return None


@on_trace("4.2")
def _(trace: Trace) -> Finding:
    facts = trace.facts
    if facts.upstream is None or facts.downstream is None or not facts.at_rest:
        return None
    up, down = trace.stream(facts.upstream), trace.stream(facts.downstream)
    failed = up.of(ON_ERROR)
    recovered = bool(failed) and any(call.at > failed[0].at for call in down.of(ON_NEXT))
    if not failed or recovered or down.cancelled:
        return None
    if down.of(ON_ERROR):
        return altered(down, trace)
    return f"on_error({shown(failed[0].value)}) of upstream was neither passed on nor recovered from"
