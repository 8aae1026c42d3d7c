"""Signals as elements: ``Flow.materialize`` emits them and ``Flow.dematerialize`` takes them."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

T_co = TypeVar("T_co", covariant=True)


@frozen
class Next(Generic[T_co]):
    """An element came."""

    item: T_co


@frozen
class Failed:
    """The flow failed."""

    error: BaseException


@frozen
class Completed:
    """The flow completed."""


Signal: TypeAlias = Next[T_co] | Failed | Completed
