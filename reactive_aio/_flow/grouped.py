"""The flow of the elements that have a key in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import field, frozen

from .flow import Flow

K_co = TypeVar("K_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


@frozen(repr=False, eq=False)
class GroupedFlow(Flow[T_co], Generic[K_co, T_co]):
    """A group of ``Flow.group_by``: a flow, and the key of its elements. It can be subscribed to once."""

    key: K_co = field(kw_only=True)
