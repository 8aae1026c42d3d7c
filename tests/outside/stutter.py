"""An operator of somebody else's, who knows of the library what it exports; docs/writing-an-operator.md begins with it."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import frozen

from reactive_aio import Flow
from reactive_aio.extend import Stage

T = TypeVar("T")


@frozen
class Stutter(Stage[T, T]):
    times: int

    def apply(self, items: Iterator[T]) -> Iterator[T]:
        for item in items:
            for _ in range(self.times):
                yield item


def stutter(times: int) -> Callable[[Flow[T]], Flow[T]]:
    return lambda flow: flow.then(Stutter(times))
