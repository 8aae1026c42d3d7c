"""Traces: the calls between publishers and subscribers, one by one.

A trace has two entries for each call of the contract: one when the call is made, and one when it returns or raises. So
it shows the nesting of the calls. The rules read only traces (`predicates`). `recorder` describes how to record a
trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from typing import Any

from attrs import field, frozen

from .._core.guard import shown
from .demand import UNBOUNDED, add_demand


class Kind(Enum):
    """The kinds of an entry of a trace: a call of the contract, the end of a call, or a pause of everything."""

    SUBSCRIBE = "subscribe"
    ON_SUBSCRIBE = "on_subscribe"
    ON_NEXT = "on_next"
    ON_ERROR = "on_error"
    ON_COMPLETE = "on_complete"
    REQUEST = "request"
    CANCEL = "cancel"
    RETURNED = "returned"
    RAISED = "raised"
    REST = "rest"


SIGNALS = frozenset({Kind.ON_SUBSCRIBE, Kind.ON_NEXT, Kind.ON_ERROR, Kind.ON_COMPLETE})
TERMINALS = frozenset({Kind.ON_ERROR, Kind.ON_COMPLETE})
ASKING = frozenset({Kind.REQUEST, Kind.CANCEL})
ENDINGS = frozenset({Kind.RETURNED, Kind.RAISED})


@frozen
class Identity:
    """A reference to an object in a trace, which does not keep it alive."""

    number: int
    type: str

    @classmethod
    def of(cls, value: object) -> Identity:
        """Return the identity of an object."""
        return cls(id(value), type(value).__name__)

    def __repr__(self) -> str:
        return "None" if self.type == "NoneType" else f"<{self.type} at {self.number:#x}>"


@frozen
class Signal:
    """One entry of a trace."""

    at: int
    """Its place in the trace."""
    kind: Kind
    stream: int = 0
    """The publisher-subscriber pair that it belongs to."""
    link: int = 0
    """The subscription that it belongs to or handed out; 0 for none."""
    value: Any = None
    """The n of request, the element, the error or the exception. For subscribe it is the identity of the subscriber."""
    call: int = 0
    """The place of the entry that began the call."""
    within: int | None = None
    """The call that was on the stack of this thread."""
    time: float = 0.0
    """The clock of the event loop, or the monotonic one without a loop."""
    clock: float = 0.0
    """Real time, for how long a call took."""
    thread: int = 0
    loop: int | None = None
    """The identity of the running event loop."""
    task: str | None = None
    depth: int = 0
    """How many frames were on the stack."""

    def __str__(self) -> str:
        if self.kind is Kind.REST:
            return f"#{self.at} everything is at rest"
        where = f"stream {self.stream}, t={self.time:.3f}, thread {self.thread}, task {self.task}, depth {self.depth}"
        inside = "" if self.within is None else f", inside #{self.within}"
        if self.kind in ENDINGS:
            return f"#{self.at} #{self.call} {self.kind.value}{self._shown}  [{where}]"
        return f"#{self.at} {self.kind.value}{self._shown or '()'}  [{where}{inside}]"

    @property
    def _shown(self) -> str:
        if self.kind in {Kind.REQUEST, Kind.ON_NEXT, Kind.ON_ERROR, Kind.RAISED, Kind.SUBSCRIBE}:
            text = shown(self.value)
            return f"({text if len(text) <= 60 else text[:57] + '...'})"
        return ""


@frozen
class Call:
    """A call of the contract, from its beginning to its end."""

    entry: Signal
    end: Signal | None

    @property
    def kind(self) -> Kind:
        """Which method was called."""
        return self.entry.kind

    @property
    def at(self) -> int:
        """The place where the call began."""
        return self.entry.at

    @property
    def value(self) -> Any:
        """Return the arguments of the call."""
        return self.entry.value

    @property
    def of_none(self) -> bool:
        """Return whether the method was called with None, or takes no argument."""
        return self.value is None or (isinstance(self.value, Identity) and self.value.type == "NoneType")

    @property
    def raised(self) -> BaseException | None:
        """Return the error that the call raised."""
        return self.end.value if self.end is not None and self.end.kind is Kind.RAISED else None

    @property
    def duration(self) -> float:
        """How long the call took in real time; 0 while it lasts."""
        return 0.0 if self.end is None else self.end.clock - self.entry.clock

    def open_at(self, place: int) -> bool:
        """Return whether the call was under way at a place of the trace."""
        return self.at < place and (self.end is None or self.end.at > place)


@frozen
class Facts:
    """Facts about a recording that can't be seen in the signals. Unknown ones are not judged."""

    at_rest: bool = False
    """Nothing was left to run when the recording ended, so no more signals will come."""
    elements: int | None = None
    """How many elements the publisher has."""
    fails: bool = False
    """The publisher is one that fails."""
    multicast: bool = False
    """All subscribers are expected to see the same elements."""
    released: bool | None = None
    """Whether the publisher let go of the subscriber."""
    done: bool = False
    """The subscriber needs no more elements."""
    asked: int = 0
    """How much the subscriber was told to request."""
    provoked: bool = False
    """A rule was broken on purpose, to test the other side."""
    depth: int = 1
    """How deep on_next may recurse through request (rule 3.3)."""
    budget: float = 0.05
    """Seconds that a call may take if it has to return quickly (rules 2.2, 3.4 and 3.5)."""
    upstream: int | None = None
    """The input stream of a processor."""
    downstream: int | None = None
    """The output stream of a processor."""
    requested_before: int = 0
    """Demand from before the beginning of the trace."""
    delivered_before: int = 0
    """Elements from before the beginning of the trace."""


def is_demand(n: object) -> bool:
    """Return whether ``request(n)`` is in order (rule 3.9)."""
    return isinstance(n, int) and not isinstance(n, bool) and n > 0


@frozen
class Stream:
    """The calls between one publisher and one subscriber, in order."""

    number: int
    calls: tuple[Call, ...]
    facts: Facts

    def of(self, *kinds: Kind) -> list[Call]:
        """Return the calls of some kinds."""
        return [call for call in self.calls if call.kind in kinds]

    @property
    def signals(self) -> list[Call]:
        """The calls of the publisher."""
        return [call for call in self.calls if call.kind in SIGNALS]

    @property
    def terminal(self) -> Call | None:
        """The first on_error or on_complete."""
        return next((call for call in self.calls if call.kind in TERMINALS), None)

    @property
    def cancelled(self) -> Call | None:
        """The first cancel of the first subscription."""
        link = self.link
        return next((call for call in self.calls if call.kind is Kind.CANCEL and call.entry.link == link), None)

    @property
    def link(self) -> int:
        """The first subscription."""
        return next((call.entry.link for call in self.calls if call.kind is Kind.ON_SUBSCRIBE), 0)

    @property
    def items(self) -> list[Any]:
        """The elements that were signalled."""
        return [call.value for call in self.calls if call.kind is Kind.ON_NEXT]

    def after(self, place: int) -> list[Call]:
        """Return the calls that began after a place of the trace."""
        return [call for call in self.calls if call.at > place]

    def requested(self, until: int | None = None) -> int:
        """Return the demand up to a place of the trace."""
        total = self.facts.requested_before
        for call in self.calls:
            if until is not None and call.at >= until:
                break
            if call.kind is Kind.REQUEST and is_demand(call.value):
                total = add_demand(total, call.value)
        return total

    @property
    def wanted(self) -> int:
        """How many elements were both requested and available."""
        elements = self.facts.elements
        return min(self.requested(), UNBOUNDED if elements is None else elements)

    @property
    def delivered(self) -> int:
        """How many elements were signalled."""
        return self.facts.delivered_before + len(self.of(Kind.ON_NEXT))


@frozen(eq=False, slots=False)
class Trace:
    """The entries of a recording, and the facts that are known about it."""

    signals: tuple[Signal, ...]
    facts: Facts = field(factory=Facts)

    @cached_property
    def calls(self) -> dict[int, Call]:
        """The calls by the place where they began."""
        ends = {signal.call: signal for signal in self.signals if signal.kind in ENDINGS}
        return {
            signal.at: Call(signal, ends.get(signal.at))
            for signal in self.signals
            if signal.kind not in ENDINGS and signal.kind is not Kind.REST
        }

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams in the order in which they began."""
        numbers = dict.fromkeys(call.entry.stream for call in self.calls.values())
        return tuple(
            Stream(number, tuple(call for call in self.calls.values() if call.entry.stream == number), self.facts)
            for number in numbers
        )

    def stream(self, number: int) -> Stream:
        """Return a stream by its number."""
        return next((each for each in self.streams if each.number == number), Stream(number, (), self.facts))

    def around(self, call: Call) -> Iterator[Call]:
        """Yield the calls that enclose a call, from the innermost outwards."""
        within = call.entry.within
        while within is not None and within in self.calls:
            outer = self.calls[within]
            yield outer
            within = outer.entry.within

    def rested(self, after: int, before: int) -> bool:
        """Return whether everything was at rest between two places."""
        return any(signal.kind is Kind.REST and after < signal.at < before for signal in self.signals)

    def excerpt(self, cited: Iterable[int] = (), n: int = 20) -> str:
        """Show the entries around the cited places, else the last ones, one a line. Say how many are left out."""
        places = set(cited)
        indexes = [index for index, signal in enumerate(self.signals) if signal.at in places]
        lines, shown_until = list[str](), 0
        for index in self._chosen(indexes, n):
            # A recording may have lost its beginning, so the first entry knows how many were before it.
            left_out = index - shown_until if lines else self.signals[index].at
            if left_out:
                lines.append(f"    ({left_out} more {'between' if lines else 'before'})")
            lines.append(f"    {self.signals[index]}")
            shown_until = index + 1
        if shown_until < len(self.signals):
            lines.append(f"    ({len(self.signals) - shown_until} more after)")
        return "\n".join(lines)

    def _chosen(self, cited: list[int], n: int) -> list[int]:
        """Return the indexes of the entries to show: one window for all cited ones, or one for each."""
        length = len(self.signals)
        groups = [cited or [length]] if not cited or cited[-1] - cited[0] < n else [[index] for index in cited]
        size = max(n // len(groups), 1)
        chosen = set[int]()
        for group in groups:
            begin = max(min((group[0] + group[-1] - size) // 2, length - size), 0)
            chosen.update(range(begin, min(begin + size, length)))
        return sorted(chosen)
