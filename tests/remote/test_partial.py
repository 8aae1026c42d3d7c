"""Elements are unpickled as far as that can be, whatever their classes raise, and those before come first."""

from __future__ import annotations

import pickle
import random
from typing import Any, Final

import pytest

from reactive_aio._remote.frames import PART, Frame
from reactive_aio._remote.partial import MadeInPart, before_failure, loaded


class OwnError(BaseException):
    pass


class Raises:
    """Can be pickled, and raises when it is unpickled."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __reduce__(self) -> Any:
        return raising, (self.kind, ["with", {"parts": (1, 2)}])


class Twice:
    """An element with a state, which is put on the stack behind it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twice) and self.value == other.value

    def __hash__(self) -> int:
        return hash(Twice)


def raising(kind: type[BaseException], _: Any) -> Any:
    raise kind


def raising_in_part(items: list[Any], kind: type[BaseException]) -> Any:
    raise MadeInPart(items, kind())


def itself() -> tuple[list[Any]]:
    """Return a tuple that is in itself, which is pickled by way of things that are taken off the stack again."""
    inner: list[Any] = []
    whole = (inner,)
    inner.append(whole)
    return whole


SHARED: Final = ["shared"]
ELEMENTS: Final[tuple[Any, ...]] = (
    1,
    None,
    "text",
    b"bytes" * 20_000,
    (),
    (1, (2, [3])),
    [],
    [1],
    [SHARED, SHARED],
    list(range(3000)),
    {1: [2], "a": {}},
    {1, 2},
    frozenset({3}),
    SHARED,
    Twice(Twice([1])),
    2**100,
    1.5,
)


def told(items: list[Any]) -> tuple[list[Any], BaseException | None]:
    return loaded(Frame(PART, pickled=pickle.dumps(items, 5)))


def test_all_elements_come_where_all_can_be_unpickled() -> None:
    assert (list(ELEMENTS), None) == told(list(ELEMENTS))


@pytest.mark.parametrize("kind", [ValueError, OwnError, SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("before", [0, 1, 2, 999, 1000, 1001, 2000, 2047])
@pytest.mark.parametrize("behind", [0, 1, 1500])
def test_those_before_the_first_that_raises_come_with_the_failure(
    kind: type[BaseException], before: int, behind: int
) -> None:
    items, failure = told([*range(before), Raises(kind), *range(behind)])

    assert (list(range(before)), kind) == (items, type(failure))


@pytest.mark.costly
@pytest.mark.parametrize("protocol", range(2, 6))
def test_whatever_the_elements_are_made_of(protocol: int) -> None:
    chance = random.Random(1)
    for _ in range(200):
        elements = chance.choices(ELEMENTS, k=chance.randrange(12))
        pickled = pickle.dumps(
            [*elements, Raises(ValueError), *chance.choices(ELEMENTS, k=chance.randrange(3))], protocol
        )

        assert elements == before_failure(pickled)


def test_elements_that_hold_themselves() -> None:
    items, _ = told([itself(), 1, Raises(ValueError)])

    assert items[0][0][0] is items[0]
    assert [1] == items[1:]


def test_the_large_buffers_of_elements_come_with_them() -> None:
    buffers: list[pickle.PickleBuffer] = []
    large = [pickle.PickleBuffer(bytearray([n]) * 20_000) for n in range(3)]
    pickled = pickle.dumps([*large[:2], Raises(ValueError), large[2]], 5, buffer_callback=buffers.append)

    items, _ = loaded(Frame(PART, pickled=pickled, buffers=buffers))
    assert [0, 1] == [memoryview(each)[0] for each in items]


def test_elements_that_are_made_by_one_call_come_as_far_as_that_says() -> None:
    class Call:
        def __reduce__(self) -> Any:
            return raising_in_part, ([1, 2], OwnError)

    items, failure = loaded(Frame(PART, pickled=pickle.dumps(Call())))

    assert ([1, 2], OwnError) == (items, type(failure))


@pytest.mark.parametrize("data", [b"", b"no pickle", pickle.dumps(Raises(ValueError)), pickle.dumps([[1]])[:-4]])
def test_what_is_no_list_has_no_elements(data: bytes) -> None:
    items, failure = loaded(Frame(PART, pickled=data))

    assert [] == items
    assert failure is not None


def test_what_would_end_an_iteration_is_a_runtime_error() -> None:
    items, failure = loaded(Frame(PART, pickled=pickle.dumps([1, Raises(StopIteration), 2], 5)))

    assert [1] == items
    assert isinstance(failure, RuntimeError)
    assert "unpickling raised StopIteration" == str(failure)
    assert isinstance(failure.__cause__, StopIteration)
