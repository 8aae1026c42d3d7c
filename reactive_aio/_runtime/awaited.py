"""The input of a region that reads an async iterator: its elements, and in between what it awaits.

The iterator is wrapped in a generator. It opens, advances and closes the iterator, and is itself advanced by the passes of the
region, as any iterator is. Where the iterator suspends, the generator gives what it awaits. See `owner` for who awaits that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, MutableSequence
from inspect import iscoroutinefunction
from types import AsyncGeneratorType, GeneratorType, coroutine
from typing import Any, Final, TypeAlias, TypeVar

from .._core import budgets
from .._core.budgets import Budget
from .._core.guard import FAILURES, as_failure, as_of_a_generator, cancelled_from_outside, cancels, is_closed_with
from .._core.notes import add_note
from .._fusion import BARE, Pace
from .._plan import Awaited
from ..hooks import also_failed, discard

R = TypeVar("R")

Reading: TypeAlias = "GeneratorType[Any, int | None, None]"
"""Yields the elements of an iterator, and in between the objects that it awaits. Behind an element it can be sent how many to collect next."""


MANY: Final = 8
"""From how much demand on elements are put in a list, where no stage follows."""

LONGEST: Final = 64
"""Elements that are read at most without a look at the clock."""

GENERATOR: Final[type[Any]] = AsyncGeneratorType

LISTED: Final = object()
"""Given by the iterator's generator when it has listed as many elements as it was to."""

ANSWERED: Final = object()
"""Yielded by the iterator's generator when the iterator has answered a cancel by an element, which comes next."""


class Interrupted(BaseException):
    """A cancel that comes while the iterator waits for demand: most likely a timeout of its own, so it is the iterator's to answer."""

    def __init__(self, cancelled: asyncio.CancelledError) -> None:
        super().__init__()
        self.cancelled = cancelled


class Left(BaseException):
    """The region needs no more elements: close the iterator."""


class AwaitedInput:
    """The input of a region whose source is an async iterator, opened at the first demand."""

    __slots__ = (
        "_answering", "_answers", "_budget", "_most", "_source", "_told", "_where",
        "broken", "cleanup", "closing", "collected", "collecting", "ended", "error", "interrupted", "into", "left", "loop", "pace",
        "reading",
    )  # fmt: skip

    idle = False
    spent = False

    def __init__(self, source: Awaited[Any], pace: Pace, where: object, budget: Budget) -> None:
        self._source = source
        self._where = where
        self.pace = pace
        self.loop = budget.loop
        self._budget = budget
        self.reading: Reading | None = None
        """The iterator, once there has been demand, until it has ended."""
        self.cleanup: BaseException | None = None
        """The error of the iterator after the region has left it."""
        self._answers: tuple[Any, ...] = ()
        """An element that the iterator yielded when it was cancelled at a wait, and not when it was asked."""
        self._answering = False
        self.collected: list[Any] = []
        """Elements that have been read and not been taken."""
        self.into: MutableSequence[Any] = self.collected
        """The list that the iterator appends to, which may be one of its reader."""
        self.collecting = 0
        """The number of elements still to collect, while they are collected. Else each is emitted alone."""
        self._most = LONGEST
        """The most elements that may be collected at a time."""
        self.interrupted = False
        """Whether it was cancelled while it waited for demand, and has not answered."""
        self.left = False
        """Whether the region needs no more elements."""
        self._told = False
        """Whether the iterator knows that the region has left it, so that its errors are those of its cleanup."""
        self.closing = False
        """Whether the iterator is being closed, which no cancel is to cut short."""
        self.ended = False
        self.error: BaseException | None = None
        self.broken: BaseException | None = None
        """The failure of a stage, where the input has stages of its own. It follows the elements that have been listed."""

    # -- for the region

    def start(self) -> None:
        """Nothing: the owner opens the source."""

    def whole_chunk(self, demand: int) -> list[Any] | None:
        """List elements for a region without stages, as far as the iterator does not suspend; None where none are listed."""
        # Listed elements come first, and then an answer to a cancel.
        few = self._answers or (demand < MANY and not self.collecting)
        if not self.collected and (few or self.ended or self.pace.awaiting is not None):
            return None
        return self.listed(demand) or None

    def listed(self, demand: int) -> list[Any]:
        """List elements until there are enough, the time is up, or the iterator suspends or ends.

        Elements that are listed come first. The answer to a cancel follows, alone.
        """
        listed = self.collected
        if not listed:
            if self._answers:
                return [self._answered()]
            # No look at the clock where it goes on in the middle of a list.
            then = 0.0 if self.collecting else budgets.clock()
            reading, until = self.reading or self.begun(), self._budget.until
            while True:
                sent = None
                if not self.collecting:
                    self.collecting = min(demand - len(listed), self._most)
                    # A generator takes a number only where it has given an element. One that begins looks at `collecting`.
                    if reading.gi_suspended and reading.gi_yieldfrom is None:
                        sent = self.collecting
                try:
                    it = reading.send(sent)
                except StopIteration:
                    self.reading = None  # as `over`
                    self.ended = True
                    break
                if reading.gi_yieldfrom is not None:
                    self.pace.awaiting = BARE if it is None else (it,)
                    break
                self.collecting = 0
                if it is not LISTED:
                    listed.append(it)
                if len(listed) >= demand:
                    break
                now = budgets.clock()
                if then:
                    self._most = 1 if now - then > budgets.QUICK else min(2 * self._most, LONGEST)
                until = until or (then or now) + self._budget.part
                if now >= until:
                    break
                then = now
        if listed:
            self.collected = self.into = []
        return listed

    def stretch(self) -> Iterator[Any] | None:
        """Return what reads the iterator, unless that waits for something."""
        if self.pace.awaiting is not None:
            return None
        if self._answers:
            self._answering = True
            return _one(self._answered())
        return None if self.ended else self.reading or self.begun()

    def _answered(self) -> Any:
        *before, answer = self._answers
        self._answers = tuple(before)
        return answer

    def used_up(self) -> bool:
        """Note that the iterator has ended. Return True, because the stages need the end."""
        if self._answering:
            self._answering = False
        else:
            self.over()
        return True

    def begun(self) -> Reading:
        """Return what reads the iterator, made if need be."""
        reading = self.reading
        if reading is None:
            made: Any = (
                self._read_one() if self._source.single else self._read()
            )  # no cast, which is a call, and most iterators of services are short
            reading = self.reading = made
        return reading

    def over(self) -> None:
        """Note that the iterator has ended."""
        self.reading = None
        self.ended = True

    @property
    def emptied(self) -> bool:
        """Whether no element of the iterator is left here."""
        return not (self.collected or self._answers)

    @property
    def at_end(self) -> bool:
        """Whether nothing more will come."""
        return self.ended

    def more(self, demand: int) -> bool:
        """Return whether there may be more."""
        return not self.ended

    def close(self) -> None:
        """Drop the elements that have come. The owner closes the iterator."""
        self.left = self.ended = True
        self._discard()

    def break_off(self) -> None:
        """Nothing: there is no pass."""

    def _discard(self) -> None:
        if self._answers or self.collected:
            left = [*self._answers, *self.collected]
            self._answers = ()
            self.collected = self.into = []
            discard(left)

    # -- for the owner

    @property
    def suspended(self) -> bool:
        """Whether the iterator waits for something."""
        return self.reading is not None and self.reading.gi_yieldfrom is not None

    def resume(self) -> None:
        """Go on after the wait of the iterator, if a pass does not do that."""
        self._step(self.begun().send, None)

    def throw(self, error: BaseException) -> None:
        """Raise an exception where the iterator waits."""
        self._told = self.left
        try:
            self._step(self.begun().throw, error)
        finally:
            # By its traceback it leads to the frame of the generator, which has ended, and from there back to here.
            del error

    def interrupt(self, cancelled: asyncio.CancelledError) -> None:
        """Cancel the iterator, which waits for demand. If it yields an element then, that is the next one."""
        if not self.ended:
            self.interrupted = not self.suspended
            self.throw(cancelled if self.suspended else Interrupted(cancelled))

    def leave(self) -> bool:
        """Close the iterator; True if that has to wait for something first."""
        while self.reading is not None and self.pace.awaiting is None:
            if self.suspended:
                self.resume()
            else:
                self.throw(Left())
        return self.reading is not None

    def _step(self, step: Callable[[Any], Any], value: object) -> None:
        try:
            it = step(value)
        except (StopIteration, Left) as over:  # Left, where it has not begun, or has ended
            over.__traceback__ = None  # which leads to this frame, and so back to it
            self.over()
        except Interrupted as interrupted:  # here too
            self._failed(interrupted.cancelled, told=self.left)
            self.over()
        else:
            if self.suspended:
                self.pace.awaiting = (it,)
            elif it is ANSWERED:
                self.interrupted = False
            elif it is LISTED:
                self.collecting = 0
            else:
                self._answers += (it,)
            if self.left:
                self._discard()
        finally:
            del value  # as above

    def abandon(self) -> None:
        """Close the iterator without an event loop, which is gone."""
        if self.reading is not None:
            self.reading.close()

    # -- the iterator

    @coroutine
    def _read(self) -> Generator[Any, int | None, None]:
        """Open, advance and close the iterator; always under the identity and in the context of the owner.

        An element is given by this generator itself, and what is awaited by one that it delegates to.
        """
        iterator: AsyncIterator[Any] | None = None
        failure: BaseException | None = None
        untold: list[asyncio.CancelledError] = []
        answers: list[Any] = []
        try:
            iterator = self._source.iterator(self._where)
            following: Callable[[], Any] = iterator.__anext__ if isinstance(iterator, GENERATOR) else _next_of(iterator)
            while True:
                try:
                    while untold:
                        answers.append((yield from _answer(iterator, untold.pop())))
                        yield ANSWERED
                    while answers:
                        yield answers.pop(0)
                    more: int | None = self.collecting
                    while True:
                        # The number is sent, so that no attribute is read for each element.
                        while not more:
                            more = yield (yield from following())
                        while self.collecting and not self.left:
                            element = yield from following()  # pyright: ignore[reportUnknownVariableType] - Any
                            self.into.append(element)  # not in one line: it may be another list behind the wait
                            del element  # which would be kept for as long as the iterator waits
                            self.collecting -= 1
                        more = yield LISTED
                except Interrupted as interrupted:
                    untold.append(interrupted.cancelled)
        except Left as leaving:
            leaving.__traceback__ = None  # which leads to the frame that has thrown it, and so back to it
        except FAILURES as error:
            if isinstance(error, GeneratorExit) and is_closed_with(error, self.loop):
                raise
            # The call that makes the iterator may raise StopAsyncIteration too, which is not an end.
            if iterator is None or not isinstance(error, StopAsyncIteration):
                failure = error
            elif isinstance(iterator, GENERATOR) and not answers:
                return  # a generator that has ended needs no closing
        yield from self._shut(iterator, failure, answers)
        del failure  # a traceback leads back to here

    @coroutine
    def _read_one(self) -> Generator[Any, None, None]:
        """As `_read`, where the iterator has one element."""
        iterator: AsyncIterator[Any] | None = None
        failure: BaseException | None = None
        try:
            iterator = self._source.iterator(self._where)
            item = yield from _awaited(iterator.__anext__())  # pyright: ignore[reportUnknownVariableType] - Any
            self.ended = True  # before the element is taken, so that the end needs no demand
            yield item
        except Left as leaving:
            leaving.__traceback__ = None  # as above
        except FAILURES as error:
            if isinstance(error, GeneratorExit) and is_closed_with(error, self.loop):
                raise
            failure = error
        yield from self._shut(iterator, failure, [])
        del failure  # as above

    async def _shut(
        self, iterator: AsyncIterator[Any] | None, failure: BaseException | None, answers: list[Any]
    ) -> None:
        """Drop answers that nobody takes, close the iterator, and keep what it has failed with."""
        if answers:
            discard(answers)
        told, self.closing, before = self._told, True, cancels()
        try:
            if iterator is not None:
                await _close(iterator, failure)
        except FAILURES as error:
            if is_closed_with(error, self.loop):
                raise
            if error is not failure:
                told = self.left
                # The region cancels nothing that closes, but `asyncio.run` may: a cancel that comes of closing alone is a failure.
                failure = as_failure(error) if told and cancels() == before else error
        if failure is not None:
            self._failed(failure, told=told)
        del failure  # as above

    def _failed(self, failure: BaseException, *, told: bool) -> None:
        """Keep the failure. It is that of the input, unless the region had left the iterator."""
        if isinstance(failure, asyncio.CancelledError):
            if self.left:
                return
            failure = cancelled_from_outside(failure, "the task of a source")
        else:
            failure = as_of_a_generator(failure, "coroutine")
        add_note(failure, f"in {self._where}")
        if told:
            self.cleanup = failure
        else:
            self.error = failure


def _next_of(iterator: AsyncIterator[Any]) -> Callable[[], Any]:
    """Return what begins the next step of an iterator, as something that a generator can delegate to."""
    following = iterator.__anext__
    if iscoroutinefunction(following):
        return following
    return lambda: _awaited(following())


def _one(item: Any) -> Iterator[Any]:
    """A generator, as the passes of the region expect."""
    yield item


async def _awaited(step: Awaitable[R]) -> R:
    return await step


async def _answer(iterator: AsyncIterator[Any], cancelled: asyncio.CancelledError) -> Any:
    throw = getattr(iterator, "athrow", None)
    if throw is None:
        raise cancelled
    return await throw(cancelled)


async def _close(iterator: AsyncIterator[Any], failure: BaseException | None) -> None:
    """Close an iterator. A failure of that is noted on an earlier one, or raised if there is none."""
    close = getattr(iterator, "aclose", None)
    if close is None:
        return
    before = cancels()
    try:
        await close()
    except FAILURES as another:
        if failure is None or another is failure:
            raise
        if isinstance(failure, (asyncio.CancelledError, GeneratorExit)):
            if isinstance(another, asyncio.CancelledError) and cancels() == before:
                # Not the cancel that was on its way: this one is the iterator's own.
                raise as_failure(another) from another
            raise
        also_failed(failure, another)
