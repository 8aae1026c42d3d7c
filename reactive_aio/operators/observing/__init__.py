"""Operators that look at what passes and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._fluent import Fluent
from ..sourcing.publisher import FromPublisher

if TYPE_CHECKING:
    from ...flow import Flow

T_co = TypeVar("T_co", covariant=True)


class Observing(Fluent[T_co]):
    """Operators that look at what passes and change nothing."""

    __slots__ = ()

    def strict(self) -> Flow[T_co]:
        """Hold everything so far to the rules of Reactive Streams while it runs; for finding faults.

        What follows speaks to what precedes by the contract, one element a signal, in a region of its own. It
        costs some tens of microseconds an element.
        Demand: passed on one for one.
        Errors: ProtocolViolation, with the rule, what was seen, what to do and the last twenty signals. As at any
        edge of the contract, an element that is None fails the flow with TypeError.
        (Ours; RxJava: ``strict``, of the same intent.)

        >>> from reactive_aio import Flow
        >>> Flow.range(3).strict().map(str).run_sync()
        ['0', '1', '2']
        """
        from ...strict import strict

        return self.begin(FromPublisher(strict(self.as_flow())))
