"""Elements are pickled as far as that can be, whatever their pickling raises, and however often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio._remote.pickling import Buffers, Parcel, Pieces


class OwnError(BaseException):
    pass


def pickling(raises: Callable[[list[Any], int], bool], kind: type[BaseException] = ValueError) -> Any:
    """Return a function that pickles lists, or raises, which may depend on how often it was called."""
    calls: list[Any] = []

    def dumps(items: Any, buffers: Buffers) -> Pieces:
        calls.append(items)
        if raises(items, len(calls)):
            raise kind(len(calls))
        return [bytes(items)]

    return dumps


def test_all_elements_go_where_all_can_be_pickled() -> None:
    parcel = Parcel.of([1, 2], pickling(lambda items, calls: False))

    assert (2, b"\1\2", [], None) == (parcel.count, parcel.pickled, parcel.buffers, parcel.failure)


@pytest.mark.parametrize("kind", [ValueError, OwnError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_those_before_the_first_that_cannot_be_pickled_go_with_the_failure(kind: type[BaseException]) -> None:
    parcel = Parcel.of([1, 2, 3, 4], pickling(lambda items, calls: 3 in items, kind))

    assert (2, b"\1\2") == (parcel.count, parcel.pickled)
    assert kind is type(parcel.failure)


def test_none_go_where_what_could_be_pickled_one_by_one_still_cannot_be_together() -> None:
    parcel = Parcel.of([1, 2], pickling(lambda items, calls: len(items) > 1))

    assert (0, b"") == (parcel.count, parcel.pickled)
    assert parcel.failure is not None
    assert (1,) == parcel.failure.args


def test_all_go_with_the_failure_where_it_was_one_of_the_moment() -> None:
    parcel = Parcel.of([1, 2], pickling(lambda items, calls: calls == 1))

    assert (2, b"\1\2") == (parcel.count, parcel.pickled)
    assert parcel.failure is not None
