"""The base of the predicates: how a rule is registered, and the searches that they share.

A predicate returns what it saw of a broken rule. It returns None if the rule was kept, or can't be judged by the trace.
Something that has not come counts as missing only if the trace ended at rest; see `Facts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

from ..._core.guard import shown
from ..advice import ADVICE
from ..rules import RULES, quote
from ..trace import Call, Kind, Stream, Trace

SUBSCRIBE, ON_SUBSCRIBE, ON_NEXT = Kind.SUBSCRIBE, Kind.ON_SUBSCRIBE, Kind.ON_NEXT
ON_ERROR, ON_COMPLETE, REQUEST, CANCEL = Kind.ON_ERROR, Kind.ON_COMPLETE, Kind.REQUEST, Kind.CANCEL


@frozen
class Violation:
    """A broken rule: the observation, and the advice."""

    rule: str
    seen: str
    trace: Trace

    def __str__(self) -> str:
        cited = [int(place) for place in re.findall(r"#(\d+)", self.seen)]
        return (
            f"{quote(self.rule)}\n  seen: {self.seen}\n  what to do: {ADVICE[self.rule]}\n"
            f"  {'the signals around it' if cited else 'the last signals'}:\n{self.trace.excerpt(cited)}"
        )


Predicate = Callable[[Trace], Violation | None]
PREDICATES: Final[dict[str, Predicate]] = {}

NEVER_SEEN: Final = {"2.11": "an event loop and the lock of the interpreter see to it; no trace can show otherwise"}
"""Rules that no trace can judge, and why."""


def violations(trace: Trace, rules: Iterable[str] = RULES) -> list[Violation]:
    """Check a trace, by all rules or by the given ones, in the order of their numbers."""
    found = [PREDICATES[rule](trace) for rule in rules if rule in PREDICATES]
    return [violation for violation in found if violation is not None]


Finding = str | None


def on_trace(rule: str) -> Callable[[Callable[[Trace], Finding]], None]:
    """Register a function that reads a whole trace."""

    def enter(look: Callable[[Trace], Finding]) -> None:
        def predicate(trace: Trace) -> Violation | None:
            seen = look(trace)
            return None if seen is None else Violation(rule, seen, trace)

        PREDICATES[rule] = predicate

    return enter


def on_stream(rule: str) -> Callable[[Callable[[Stream, Trace], Finding]], None]:
    """Register a function that reads one stream of a trace."""

    def enter(look: Callable[[Stream, Trace], Finding]) -> None:
        on_trace(rule)(lambda trace: next(filter(None, (look(each, trace) for each in trace.streams)), None))

    return enter


def raising(calls: Iterable[Call], words: str) -> Finding:
    """Report the first call that raised."""
    for call in calls:
        if call.raised is not None:
            return f"{call.kind.value} raised {shown(call.raised)} {words} (#{call.at})"
    return None


def unmet(stream: Stream, trace: Trace, words: str) -> Finding:
    """Report demand that was never met although there are elements."""
    missing = stream.wanted - stream.delivered
    if not trace.facts.at_rest or trace.facts.elements is None or stream.cancelled or missing <= 0:
        return None
    return f"{missing} of {stream.wanted} elements never came, {words}"


def slow(calls: list[Call], trace: Trace) -> Finding:
    """Report if even the quickest of some calls was slow. A call that was merely interrupted does not count."""
    if not calls or min(call.duration for call in calls) <= trace.facts.budget:
        return None
    quickest = min(call.duration for call in calls)
    return f"the quickest of {len(calls)} calls of {calls[0].kind.value} took {quickest * 1000:.0f} ms"


def altered(stream: Stream, trace: Trace) -> Finding:
    """Report if a processor passed on another failure than that of upstream."""
    upstream = trace.facts.upstream
    failed = [] if upstream is None else trace.stream(upstream).of(ON_ERROR)
    passed_on = [call for call in stream.of(ON_ERROR) if failed and call.at > failed[0].at]
    if not passed_on or passed_on[0].value is failed[0].value:
        return None
    return f"on_error({shown(failed[0].value)}) of upstream was passed on as on_error({shown(passed_on[0].value)})"


def inside(call: Call, trace: Trace, kinds: frozenset[Kind]) -> Call | None:
    """Return the nearest enclosing call of the same stream and of the given kinds."""
    outer = (each for each in trace.around(call) if each.entry.stream == call.entry.stream and each.kind in kinds)
    return next(outer, None)


def outcome(call: Call) -> str:
    """Return how a call ended."""
    return "returned" if call.raised is None else f"raised {shown(call.raised)}"
