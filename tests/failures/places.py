"""Every place of the library where a user's code is called, and how to have it called there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from attrs import frozen

from reactive_aio import Flow
from reactive_aio._fusion import Stage
from tests.failures.code import AnyFlow, Code

SOON: Final = 1e-9


@frozen
class Place:
    """A place where a user's code is called."""

    method: str
    """The method of Flow."""
    parameter: str
    """Its parameter, or what else of a user's is called."""
    build: Callable[[Code], AnyFlow] | None = None
    """Makes the flow, where the place is in a flow."""
    end: Callable[[Code], Awaitable[object]] | None = None
    """Runs a flow to its end, where the place is in an end."""
    hears: str = "end"
    """The receiver: the ``end``; or the end of the ``first`` failure alone; or it, and the hook of this one: ``first and hook``."""
    cleanup: bool = False
    """Whether it is called when all is over, so that it may be the second failure, or one behind a cancel."""
    early: bool = False
    """Whether it is called only where the flow is left early."""
    in_task: bool = False
    """Whether it is called in a task that is cancelled then: a CancelledError can't be told from that."""
    python_swallows: tuple[str, ...] = ()
    """The kinds that Python itself swallows, when the function is called early."""
    lasting: Callable[[Code], AnyFlow] | None = None
    """Makes a flow that waits for ever, where ``build`` in an endless cell does not."""
    not_kinds: tuple[str, ...] = ()
    """The kinds that have a meaning of their own in this place."""
    foreign: bool = False
    """Whether it breaks the contract by raising at all. Then the receiver does not matter, as long as there is one, once."""
    not_by_workers: bool = False
    """Whether it is called for each stretch of elements where workers run it, and so is no cleanup there."""

    def __str__(self) -> str:
        return f"{self.method}.{self.parameter}"


PLACES: list[Place] = []


def flow(method: str, parameter: str, build: Callable[..., AnyFlow], **more: Any) -> None:
    """Enter a place in a flow."""
    PLACES.append(Place(method, parameter, build, **more))


def end(method: str, parameter: str, run: Callable[[Code], Awaitable[object]], **more: Any) -> None:
    """Enter a place in an end."""
    PLACES.append(Place(method, parameter, end=run, **more))


def followed(build: Callable[[Code], AnyFlow]) -> Callable[[Code], AnyFlow]:
    """Have a source that can't wait be followed by one that does."""
    return lambda code: build(code).concat(Flow.never())


def held(build: Callable[[Code], AnyFlow]) -> Callable[[Code], AnyFlow]:
    """Have a source held open by what is made of its first element, which waits for ever."""
    return lambda code: build(code).concat_map(lambda _: Flow.never())


@frozen(eq=False)
class Passing(Stage[Any, Any]):
    """A stage of a user's own, with one method that raises."""

    code: Code
    bad: str

    def _go(self, method: str) -> None:
        if method == self.bad:
            self.code.trip()

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        """Pass on."""
        self._go("apply")
        for item in items:
            self._go("apply, in the middle")
            yield item

    def finish(self) -> Iterator[Any]:
        """Return nothing more."""
        self._go("finish")
        return iter(())

    def close(self) -> None:
        """Let go."""
        self._go("close")

    def transform(self) -> Passing:
        """Return the stage itself."""
        self._go("transform")
        return self


class BadRandom(random.Random):
    """A source of chance that raises."""

    code: Code

    def random(self) -> float:
        """Return a number."""
        self.code.trip()
        return 0.5


def bad_random(code: Code) -> BadRandom:
    """Make one."""
    made = BadRandom(1)
    made.code = code
    return made


def by_function(method: str, parameter: str, apply: Callable[..., AnyFlow], gives: Any, **more: Any) -> None:
    """Enter a function that is called for an element."""
    flow(method, parameter, lambda code: apply(code.numbers(), code.calls(gives)), **more)


async def identity(item: Any) -> Any:
    """Return the element, a turn later."""
    await asyncio.sleep(0)
    return item


NO_PLACE: Final = {
    "collect.combine": "is called on Spark only; see tests/spark",
    "reduce.combine": "likewise",
    "reduce_by_key.combine": "likewise",
    "repartition.key": "likewise",
    "to_spark.progress": "is called on Spark only",
    "from_spark.context": "takes variables, and calls nothing",
    "through.operator": "is called when the flow is built, and raises there",
    "subscribe.subscriber": "see test_subscribers.py in this folder",
    "then.stage": "its methods are entered, each by its name",
    "from_publisher.publisher": "likewise",
    "from_iterable.items": "likewise",
    "from_async_iterable.items": "likewise",
}
"""Parameters that take something of a user's, have no place of their name, and why."""

# The places are many, and stand on what is above.
import tests.failures.places_of_elements  # noqa: E402 # pyright: ignore[reportUnusedImport] - it enters them
import tests.failures.places_of_operators  # noqa: E402 # pyright: ignore[reportUnusedImport] - likewise
import tests.failures.places_of_sources  # noqa: E402, F401 # pyright: ignore[reportUnusedImport] - likewise
