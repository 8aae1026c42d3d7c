"""The common part of the tests of subscribers: one exercise a rule, driven by the handle that the verification has."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from .._core.containers import new_list
from .._core.guard import FAILURES
from ..spec import Subscriber
from ..spec.predicates import NEVER_SEEN
from .outcome import NotVerifiedError, RuleBrokenError
from .probe import HandPublisher
from .run import Run
from .verification import Verification


class BoomError(Exception):
    """The failure that the verification signals."""


@define(eq=False)
class Subject:
    """A subscriber under test, the publisher in front of it, and the handle on it."""

    publisher: HandPublisher
    subscriber: Subscriber[Any]
    handle: Any
    sent: list[Any] = field(init=False, factory=new_list)
    """The elements that it was sent."""
    error: BaseException | None = field(init=False, default=None)
    completed: bool = field(init=False, default=False)

    def complete(self) -> None:
        """Signal the end."""
        self.completed = True
        self.say(lambda subscriber: subscriber.on_complete())

    def fail(self) -> None:
        """Signal a failure."""
        error = self.error = BoomError()
        self.say(lambda subscriber: subscriber.on_error(error))

    def say(self, signal: Callable[[Any], object]) -> None:
        """Signal something; what the subscriber raises is in the trace."""
        try:
            signal(self.publisher.subscriber)
        except FAILURES:
            return


class SubscriberExercises(Verification):
    """The exercises; what they need to know of the handle is left to the two verifications."""

    __test__ = False

    def create_element(self, n: int) -> Any:
        """Return the n-th element that the subscriber under test is sent."""
        return n

    @abstractmethod
    def _make(self, run: Run) -> tuple[Subscriber[Any], Any]:
        """Make a subscriber and the handle on it."""

    @abstractmethod
    def _want(self, run: Run, subject: Subject, n: int) -> None:
        """Make the subscriber request."""

    @abstractmethod
    async def _leave(self, run: Run, subject: Subject) -> None:
        """Make the subscriber cancel."""

    # -- steps

    async def begin(self, run: Run, publisher: HandPublisher | None = None) -> Subject:
        """Subscribe a fresh subscriber."""
        subscriber, handle = self._make(run)
        subject = Subject(publisher or HandPublisher(), subscriber, handle)
        run.tolerate(lambda: run.recorder.connect(subject.publisher, subscriber))
        await run.rest()
        return subject

    async def want(self, run: Run, subject: Subject, n: int = 1) -> None:
        """Make the subscriber request, and go on only if it did."""
        self._want(run, subject, n)
        await run.rest()
        run.need(subject.publisher.requested, "the subscriber requested nothing; see rule 2.1")

    async def feed(self, run: Run, subject: Subject, n: int) -> None:
        """Send elements, as far as they are wanted."""
        for _ in range(n):
            if subject.publisher.demand and not subject.publisher.cancelled:
                item = self.create_element(len(subject.sent))
                subject.sent.append(item)
                subject.say(partial(self._send, subject, item))
                await run.rest()

    @staticmethod
    def _send(subject: Subject, item: Any, _: Any) -> None:
        subject.publisher.send(item)

    async def left(self, run: Run, publisher: HandPublisher | None = None) -> Subject:
        """Bring a subscriber to cancel, and go on only if it did."""
        subject = await self.begin(run, publisher)
        await self._leave(run, subject)
        await run.rest()
        run.need(subject.publisher.cancelled, "the subscriber did not cancel; see rule 2.6")
        return subject

    # -- exercises, by rule

    async def _201(self, run: Run) -> Subject:
        subject = await self.begin(run)
        self._want(run, subject, 1)
        await run.rest()
        await self.feed(run, subject, 1)
        await run.check("2.1")
        return subject

    async def _202(self, run: Run) -> None:
        subject = await self.begin(run)
        for _ in range(3):
            await self.want(run, subject)
            await self.feed(run, subject, 1)
        await run.check("2.2")

    async def _terminal(self, run: Run, rule: str, *, error: bool, demand: bool = True) -> Subject:
        subject = await self.begin(run)
        if demand:
            await self.want(run, subject)
        if error:
            subject.fail()
        else:
            subject.complete()
        await run.check(rule)
        return subject

    async def _204(self, run: Run) -> None:
        for end in (Subject.complete, Subject.fail):
            subject = await self.begin(run)
            await self.want(run, subject)
            await self.feed(run, subject, 1)
            end(subject)
            await run.check("2.4")

    async def _205(self, run: Run) -> None:
        subject = await self.begin(run)
        run.know(provoked=True)
        subject.say(lambda subscriber: subscriber.on_subscribe(HandPublisher()))
        await run.check("2.5")

    async def _206(self, run: Run) -> None:
        subject = await self.begin(run)
        await self._leave(run, subject)
        run.know(done=True)
        await run.check("2.6")

    async def _207(self, run: Run) -> None:
        home = threading.get_ident()

        def dwell(_: HandPublisher) -> None:
            # On other threads a publisher that takes its time gives two calls the occasion to meet.
            if threading.get_ident() != home:
                time.sleep(0.005)

        subject = await self.begin(run, HandPublisher(asked=dwell))
        for _ in range(3):
            await self.want(run, subject)
            await self.feed(run, subject, 1)
        await run.check("2.7")

    async def _208(self, run: Run) -> None:
        subject = await self.left(run)
        subject.say(lambda _: subject.publisher.send(self.create_element(len(subject.sent))))
        await run.check("2.8")

    async def _211(self, _: Run) -> None:
        raise NotVerifiedError(f"rule 2.11 can't be verified: {NEVER_SEEN['2.11']}")

    async def _212(self, run: Run) -> None:
        first, second = self._make(run)[0], self._make(run)[0]
        if first == second:
            raise RuleBrokenError(
                "§2.12 a subscriber receives on_subscribe once at most, by the equality of objects\n"
                f"  seen: two fresh subscribers of type {type(first).__name__} are equal, so they count as one\n"
                "  what to do: give the class identity as its equality (attrs: eq=False, dataclasses: eq=False)"
            )

    async def _213_none(self, run: Run, method: str) -> None:
        run.know(provoked=True)
        publisher = HandPublisher()
        if method == "on_subscribe":
            publisher.subscriber = run.recorder.subscriber(self._make(run)[0])
            subject = Subject(publisher, publisher.subscriber, None)
        else:
            subject = await self.begin(run, publisher)
            await self.want(run, subject)
        subject.say(lambda subscriber: getattr(subscriber, method)(None))
        await run.check("2.13")

    async def _213_failing(self, run: Run) -> None:
        subject = await self.begin(run)
        await self.want(run, subject, 2)
        await self.feed(run, subject, 2)
        await run.check("2.13")

    async def _301(self, run: Run) -> None:
        subject = await self.begin(run)
        for _ in range(3):
            await self.want(run, subject)
            await self.feed(run, subject, 1)
        await run.check("3.1")

    async def _308(self, run: Run, *, told: bool) -> Subject:
        subject = await self.begin(run)
        await self.want(run, subject, 2)
        await self.want(run, subject, 3)
        if told:
            run.know(asked=5)
        await self.feed(run, subject, 5)
        await run.check("3.8")
        return subject

    async def _310(self, run: Run) -> None:
        subject = await self.begin(run, HandPublisher([self.create_element(n) for n in range(5)]))
        self._want(run, subject, 2)
        await run.rest()
        run.need(subject.publisher.requested, "the subscriber requested nothing; see rule 2.1")
        await run.check("3.10")

    async def _311(self, run: Run) -> None:
        def complete(publisher: HandPublisher) -> None:
            publisher.asked = lambda _: None
            publisher.subscriber.on_complete()

        def fail(publisher: HandPublisher) -> None:
            publisher.asked = lambda _: None
            publisher.subscriber.on_error(BoomError())

        for end in (complete, fail):
            subject = await self.begin(run, HandPublisher(asked=end))
            self._want(run, subject, 1)
            await run.rest()
            run.need(subject.publisher.requested, "the subscriber requested nothing; see rule 2.1")
        await run.check("3.11")

    async def _314(self, run: Run) -> None:
        run.know(done=True)
        subject = await self.left(run)
        subject.say(lambda subscriber: subscriber.on_complete())
        await run.check("3.14")

    async def _315(self, run: Run) -> None:
        await self.left(run, HandPublisher(left=lambda publisher: publisher.subscriber.on_error(BoomError())))
        await run.check("3.15")

    async def _316(self, run: Run) -> None:
        def fail(publisher: HandPublisher) -> None:
            publisher.asked = lambda _: None
            publisher.subscriber.on_error(BoomError())

        subject = await self.begin(run, HandPublisher(asked=fail))
        self._want(run, subject, 1)
        await run.rest()
        run.need(subject.publisher.requested, "the subscriber requested nothing; see rule 2.1")
        await run.check("3.16")
