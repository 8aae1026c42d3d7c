"""Marble notation, both ways: one line of text is a test, documentation and a picture.

As in RxJS: ``-`` lets one unit of time pass, any other sign is an element and takes one unit too, ``|`` is the end and
``#`` a failure. Signs in parentheses come at once, at the time of the opening parenthesis. The group takes as many
units as it has signs. Blanks are for alignment. Without an end the stream goes on for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from .._clocks.virtual import DeadlockError, VirtualTimeLoop
from ..spec import UNBOUNDED, Publisher
from .listening import COMPLETE, ERROR, NEXT, Listener
from .settling import settle

if TYPE_CHECKING:
    from .._flow.flow import Flow

SIGNS: Final = {"|": COMPLETE, "#": ERROR}
RESERVED: Final = frozenset("-()|#^! ")

Mark = tuple[int, str, str]
"""The units of time before a signal, its kind, and its sign."""


class MarbleError(Exception):
    """The failure of a ``#`` without another error."""


def parse(text: str) -> list[Mark]:
    """Return the signals of a diagram.

    >>> parse("-a-(b|)")
    [(1, 'next', 'a'), (3, 'next', 'b'), (3, 'complete', '|')]
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
        raise TypeError(f"a diagram is a str, not {type(text).__name__}")
    marks: list[Mark] = []
    at, group = 0, None
    for place, sign in enumerate(text):
        if sign == " ":
            continue
        if marks and marks[-1][1] != NEXT and sign not in "-)":
            raise _wrong(text, place, "nothing may follow the end")
        if sign in "^!" or (sign == "(" and group is not None) or (sign in "-)" and (group is None) == (sign == ")")):
            raise _wrong(text, place, f"{sign!r} can't stand here")
        if sign in "()":
            group = at if sign == "(" else None
        elif sign != "-":
            marks.append((at if group is None else group, SIGNS.get(sign, NEXT), sign))
        at += 1
    if group is not None:
        raise _wrong(text, len(text), "a parenthesis is missing")
    return marks


def _wrong(text: str, place: int, why: str) -> ValueError:
    return ValueError(f"marbles {text!r}, sign {place + 1}: {why}")


def from_marbles(
    text: str, values: Mapping[str, Any] | None = None, error: BaseException | None = None, *, unit: float = 1.0
) -> Flow[Any]:
    """Make a flow of a diagram, on the clock of the loop it runs on.

    Time counts from the first demand. The flow is under demand as any other. An element without demand at its time
    waits. The elements after it come at their times, or at once if these have passed.

    Args: text: the diagram. values: what the signs stand for. A sign that is not among them stands for itself. error:
        the failure of ``#``, by default a MarbleError. unit: the seconds of one sign.

    >>> from reactive_aio.testing import from_marbles, record, run_virtual
    >>> run_virtual(record(from_marbles("-a-b--(c|)").map(str.upper)))
    '-A-B--(C|)'
    """
    from .._flow.flow import Flow

    marks = parse(text)
    if not unit > 0:
        raise ValueError(f"from_marbles(unit={unit}): unit is a number of seconds above 0")
    if error is not None and not isinstance(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"from_marbles(error=...) takes an exception, not {type(error).__name__}")

    async def produce(emit: Callable[[Any], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for at, kind, sign in marks:
            due = start + at * unit
            if loop.time() < due:
                await asyncio.sleep(due - loop.time())
            if kind == ERROR:
                raise error if error is not None else MarbleError(f"the # of {text!r}")
            if kind == COMPLETE:
                return
            await emit(sign if values is None else values.get(sign, sign))
        await loop.create_future()

    return Flow.create(produce)


async def record(
    flow: Publisher[Any],
    values: Mapping[str, Any] | None = None,
    *,
    unit: float = 1.0,
    request: int = UNBOUNDED,
    until: float | None = None,
) -> str:
    """Run a stream and return its diagram.

    It runs to its end, or for ``until`` seconds. On virtual time it runs until nothing more can come.

    Args: flow: a flow, or any other publisher. values: the signs of elements, as for `from_marbles`. An element of one
        letter is its own sign. unit: the seconds of one sign. Times are rounded to it. request: the demand. until:
        seconds after which to cancel.

    >>> from reactive_aio import Flow
    >>> from reactive_aio.testing import record, run_virtual
    >>> run_virtual(record(Flow.range(3)))
    '(012|)'
    """
    loop = asyncio.get_running_loop()
    listener: Listener[Any] = Listener(loop)
    flow.subscribe(listener)
    start = loop.time()

    def stop() -> None:
        listener.cancel()
        listener.wake()

    timer = None if until is None else loop.call_later(until, stop)
    try:
        await _listen(listener, request)
    finally:
        if timer is not None:
            timer.cancel()
        if not listener.ended and listener.subscription is not None:
            listener.cancel()
    await settle()
    if listener.violations:
        raise AssertionError(f"{flow!r} broke a rule: {'; '.join(listener.violations)}")
    timed = ((event.at - start, _sign(event.kind, event.value, values)) for event in listener.events)
    length = 0 if until is None else round(until / unit)
    return render(((round(at / unit), sign) for at, sign in timed), length)


async def _listen(listener: Listener[Any], request: int) -> None:
    """Wait for the end, or until nothing can come."""
    asked = False
    while not listener.ended:
        if listener.subscription is not None and not asked:
            asked = True
            listener.request(request)
        arrival = listener.arrival()
        if isinstance(listener.loop, VirtualTimeLoop):
            listener.loop.expire(arrival, 60)
        try:
            await arrival
        except DeadlockError:
            return


def _sign(kind: str, item: Any, values: Mapping[str, Any] | None) -> str:
    if kind != NEXT:
        return "|" if kind == COMPLETE else "#"
    for sign, value in (values or {}).items():
        if value == item:
            return sign
    sign = str(item)
    if len(sign) != 1 or sign in RESERVED:
        raise ValueError(f"{item!r} can't be a sign of a diagram. Name it with values={{sign: element}}")
    return sign


def render(signs: Iterable[tuple[int, str]], length: int = 0) -> str:
    """Draw signs at their times, as a diagram of ``length`` signs at least.

    >>> render([(1, "a"), (3, "b"), (3, "|")])
    '-a-(b|)'
    """
    text = ""
    for at, group in _grouped(signs):
        if at < len(text):
            raise ValueError(f"{group!r} at {at} is too close behind {text!r}. Record with a smaller unit")
        text += "-" * (at - len(text)) + (group if len(group) == 1 else f"({group})")
    return text + "-" * (length - len(text) if not text.endswith(("|", "#", "|)", "#)")) else 0)


def _grouped(signs: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    groups: dict[int, str] = {}
    for at, sign in signs:
        groups[at] = groups.get(at, "") + sign
    yield from groups.items()
