"""Exceptions as data: what arrives of one that was raised in another process."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from collections.abc import Callable

import pytest

from reactive_aio import RemoteError
from reactive_aio._remote.failures import pack, unpack


class HeldError(Exception):
    """Holds what can't be pickled."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError("not to be shown")

    __repr__ = __str__


class HeldSilentError(SilentError):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class CodedGroup(ExceptionGroup[Exception]):
    """A group whose constructor takes more than a group's."""

    def __new__(cls, errors: list[Exception], code: int) -> CodedGroup:
        return super().__new__(cls, "many", errors)

    def __init__(self, errors: list[Exception], code: int) -> None:
        self.code = code


class NeitherError(Exception):
    """Is neither true nor false, which Python's own tracebacks ask for."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class OwnError(BaseException):
    pass


class ForgetfulError(Exception):
    """Comes back once, or as something else."""

    def __init__(self, kind: type[BaseException] | str, left: list[int]) -> None:
        self.kind, self.left = kind, left

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return forgetful, (self.kind, id(self.left))


LEFT: list[int] = []


def forgetful(kind: type[BaseException] | str, left: int) -> object:
    if LEFT:
        LEFT.pop()
        return ForgetfulError(kind, LEFT)
    if isinstance(kind, str):
        return kind
    raise kind("not here")


class BlindError(Exception):
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> object:
        raise OwnError(name)


def sent(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as raised:
        return unpack(pack(raised, "a worker"))


def raised(raising: Callable[[], object]) -> BaseException:
    try:
        raising()
    except Exception as error:
        return unpack(pack(error, "a worker"))
    raise AssertionError("it should have raised")


def test_the_cause_comes_along_and_so_does_its_own() -> None:
    def raising() -> None:
        try:
            try:
                int("key")
            except ValueError as error:
                raise LookupError("not found") from error
        except LookupError as error:
            raise RuntimeError("no good") from error

    error = raised(raising)

    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, LookupError)
    assert "not found" == str(error.__cause__)
    assert isinstance(error.__cause__.__cause__, ValueError)
    assert error.__suppress_context__


def test_so_does_what_was_being_handled_unless_it_was_denied() -> None:
    def raising(cause: BaseException | None = None, *, denied: bool = False) -> None:
        try:
            int("key")
        except ValueError:
            if denied:
                raise RuntimeError("no good") from cause
            raise RuntimeError("no good")  # noqa: B904 - the context is what this is about

    error = raised(raising)
    assert isinstance(error.__context__, ValueError)
    assert error.__cause__ is None
    error = raised(lambda: raising(denied=True))
    assert (None, None) == (error.__cause__, error.__context__)


def test_a_cause_that_cannot_be_pickled_is_stood_in_for_alone() -> None:
    def raising() -> None:
        raise ValueError("no good") from HeldError("held")

    error = raised(raising)

    assert isinstance(error, ValueError)
    assert "HeldError: held" == str(error.__cause__)
    assert isinstance(error.__cause__, RemoteError)


def test_a_chain_without_end_is_cut_off() -> None:
    error: Exception = ValueError(0)
    for n in range(1, 10_000):
        after = ValueError(n)
        after.__cause__, error = error, after
    got: BaseException | None = sent(error)

    numbers: list[object] = []
    while got is not None:
        numbers += got.args
        got = got.__cause__
    assert numbers == [*range(9_999, 9_999 - len(numbers), -1)]
    assert 1 < len(numbers) < 100


def test_causes_in_a_circle_are_cut_off() -> None:
    first, second = ValueError(1), ValueError(2)
    first.__cause__, second.__cause__ = second, first

    assert "1" == str(sent(first))


def test_of_a_group_only_the_members_that_cannot_be_pickled_are_stood_in_for() -> None:
    held = HeldError("held")
    held.add_note("a note")
    error = sent(ExceptionGroup("many", [KeyError("key"), ExceptionGroup("inner", [held])]))

    assert isinstance(error, ExceptionGroup)
    assert "many" == error.message
    lost, inner = error.split(RemoteError)
    assert lost is not None
    assert inner is not None
    assert isinstance(inner.exceptions[0], KeyError)
    (nested,) = lost.exceptions
    assert isinstance(nested, ExceptionGroup)
    (member,) = nested.exceptions
    assert "HeldError: held" == str(member)
    assert ["a note"] == member.__notes__


def test_a_group_of_a_class_of_its_own_stays_what_it_is() -> None:
    error = sent(CodedGroup([KeyError("key")], 7))

    assert isinstance(error, CodedGroup)
    assert (7, "many") == (error.code, error.message)


def test_one_that_is_neither_true_nor_false_arrives_as_itself_with_its_traceback() -> None:
    error = sent(NeitherError("no good"))

    assert NeitherError is type(error)
    assert "raise error" in error.__notes__[-1]


@pytest.mark.parametrize("kind", [ValueError, OwnError, SystemExit, KeyboardInterrupt, SilentError, "a text"], ids=str)
def test_one_that_does_not_come_back_here_is_stood_in_for(kind: type[BaseException] | str) -> None:
    LEFT.append(1)
    error = sent(ForgetfulError(kind, LEFT))

    assert RemoteError is type(error)
    assert "ForgetfulError" in str(error)


def test_one_that_raises_whatever_is_asked_of_it_is_stood_in_for() -> None:
    error = sent(BlindError())

    assert RemoteError is type(error)
    assert "BlindError" in str(error)


@pytest.mark.parametrize("kind", [SilentError, HeldSilentError])
def test_one_that_cannot_be_shown_arrives_all_the_same(kind: type[Exception]) -> None:
    error = sent(kind())

    assert "SilentError" in f"{type(error).__name__} {error.args}"
    assert "raise error" in error.__notes__[-1]


def test_one_of_which_nothing_can_be_set_has_its_notes_and_its_traceback() -> None:
    error = sent(FrozenError(7))

    assert isinstance(error, FrozenError)
    assert 7 == error.code
    assert "raise error" in error.__notes__[-1]


def test_notes_that_are_none_are_left_out() -> None:
    error = ValueError("no good")
    vars(error)["__notes__"] = 7

    assert 1 == len(sent(error).__notes__)


def test_what_travels_is_a_tuple_of_four() -> None:
    pickled, summary, notes, trace = pickle.loads(pack(ValueError("no good"), "a worker"))

    assert isinstance(pickle.loads(pickled), ValueError)
    assert ("ValueError: no good", []) == (summary, notes)
    assert trace.startswith("traceback in a worker:")
