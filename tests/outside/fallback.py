"""A combinator of somebody else's; docs/writing-a-combinator.md begins with it."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from attrs import define, frozen

from reactive_aio import Flow
from reactive_aio.extend import Coordinator, Pushed, flow_of

T = TypeVar("T")


@frozen
class OrElse(Pushed[T]):
    flows: tuple[Flow[T], ...]

    def open(self, inlet: Any) -> Coordinator:
        trying = Trying(inlet, iter(self.flows))
        trying.advance(next(trying.others))
        return trying


@define(eq=False)
class Trying(Coordinator):
    """Goes on to the next flow where one fails before it has given anything."""

    others: Iterator[Flow[Any]]

    def on_source_complete(self) -> None:
        self.complete()

    def on_source_error(self, error: BaseException) -> None:
        other = None if self.emitted else next(self.others, None)
        if other is None:
            self.fail(error)
        else:
            self.advance(other)


def or_else(*others: Flow[T]) -> Callable[[Flow[T]], Flow[T]]:
    return lambda flow: flow_of(OrElse((flow, *others)))
