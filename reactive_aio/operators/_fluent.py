"""The base of the families of methods: a flow begins with a source and continues with a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, isasyncgenfunction, iscoroutinefunction
from sys import float_info
from types import AsyncGeneratorType, BuiltinFunctionType, CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeGuard, TypeVar, cast

from .._fusion import Stage, label
from .._plan import PublishOn, Source, SubscribeOn

if TYPE_CHECKING:
    from .._flow.flow import Flow

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


NO_GENERATOR: Final = "leave out its yield, or make a flow of it with Flow.from_async_iterable()"
"""The advice where an async generator would not be read."""


class Fluent(ABC, Generic[T_co]):
    """The core that every family inherits. `Flow` implements it."""

    __slots__ = ()

    @abstractmethod
    def _as_flow(self) -> Flow[T_co]:
        """Return this object, typed as a Flow."""

    @classmethod
    @abstractmethod
    def _begin(cls, source: Source[U]) -> Flow[U]:
        """Return the flow of a source."""

    @classmethod
    @abstractmethod
    def _given(cls, items: tuple[U, ...]) -> Flow[U]:
        """Return the flow of given elements."""

    @abstractmethod
    def then(self, stage: Stage[T_co, U]) -> Flow[U]:
        """Return this flow followed by a synchronous operator."""

    @abstractmethod
    def _place(self, mark: PublishOn | SubscribeOn) -> Flow[T_co]:
        """Return this flow with a boundary or a placement."""


def check_flow(method: str, flow: object) -> None:
    """Raise unless the value is a flow."""
    if not is_flow(flow):
        raise TypeError(f"{method}() takes flows, not {type(flow).__name__}: {_how_to_make(flow)}")


def _how_to_make(value: object) -> str:
    if isinstance(getattr(type(value), "flow", None), property):  # a Hub or a State
        return "pass its `flow`"
    if hasattr(value, "subscribe"):
        return "make one with Flow.from_publisher(...)"
    return "make one with Flow.from_iterable(...)"


def check_flows(method: str, *flows: object) -> None:
    """Raise unless all are flows, the first too: a method may be called on the class with any value."""
    for flow in flows:
        if hasattr(flow, "__iter__") and not is_flow(flow):
            raise TypeError(
                f"{method}() takes flows, not {type(flow).__name__}: give each flow as an argument of its own, as in "
                f"{method}(*flows), and make a flow of elements with Flow.from_iterable(...)"
            )
        check_flow(method, flow)


def is_flow(value: object) -> TypeGuard[Flow[Any]]:
    """Return whether ``value`` is a flow."""
    kind: Any = type(value)
    return _is_of_flows(kind)


@lru_cache(maxsize=512)
def _is_of_flows(kind: type[object]) -> bool:
    """Return whether the instances of a class are flows. The answer is cached, because abstract classes are slow."""
    return issubclass(kind, Fluent)


def check_function(method: str, fn: object, instead: str | None = None) -> None:
    """Raise unless the value is callable, and callable here."""
    if not callable(fn):
        other = f". For a flow there is {method}_other()" if method == "take_until" and is_flow(fn) else ""
        raise TypeError(f"{method}() takes a function, not {type(fn).__name__}{other}")
    if instead is not None:
        if is_async(fn):
            raise TypeError(f"{method}() takes an ordinary function, but {label(fn)} is async def: {instead}")
        refuse_async_generator(method, fn)


def check_errors(method: str, errors: object) -> None:
    """Raise unless the value could stand in an ``except`` clause."""
    given: tuple[object, ...] = cast("tuple[object, ...]", errors) if isinstance(errors, tuple) else (errors,)
    for each in given:
        if not _is_exception_type(each):
            raise TypeError(f"{method}(errors=...) takes an exception type or a tuple of them, not {label(each)}")


def _is_exception_type(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def is_async(fn: Callable[..., object]) -> bool:
    """Return whether calling ``fn`` returns a coroutine."""
    if type(fn) is FunctionType and not fn.__dict__:
        return bool(fn.__code__.co_flags & CO_COROUTINE)  # as below, without the calls: most functions are such
    if type(fn) is BuiltinFunctionType or isinstance(fn, type):
        return False  # a class gives an instance, even one that is awaited when it is called
    return iscoroutinefunction(fn) or iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004 - the method


def refuse_async_generator(method: str, fn: Callable[..., object]) -> None:
    """Raise if calling ``fn`` makes an async generator, since nothing would run it."""
    if type(fn) is FunctionType and not fn.__dict__:
        makes_one = bool(fn.__code__.co_flags & CO_ASYNC_GENERATOR)  # as above
    elif isinstance(fn, type):
        makes_one = False
    else:
        makes_one = isasyncgenfunction(fn) or isasyncgenfunction(getattr(fn, "__call__", None))  # noqa: B004 - the method
    if makes_one:
        raise TypeError(f"{method}() would not read the async generator that {label(fn)} makes: {NO_GENERATOR}")


def refuse_coroutine(fn: Callable[..., object], given: object, instead: str) -> None:
    """Raise if an ordinary function has returned a coroutine or an async generator, since nothing would run it."""
    if isinstance(given, CoroutineType):
        given.close()
        raise TypeError(f"{label(fn)} returned a coroutine, and nobody awaits it: {instead}")
    if isinstance(given, AsyncGeneratorType):  # it has not begun, so there is nothing to close
        raise TypeError(f"{label(fn)} returned an async generator, and nobody reads it: {NO_GENERATOR}")


def check_whole(method: str, name: str, n: object) -> int:
    """Raise unless the value is a whole number."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{method}({name}={label(n)}): {name} is a whole number, not {type(n).__name__}")
    return n


MOST_PARTITIONS: Final = 2**31 - 1
"""Spark counts partitions by an int of Java."""


def check_count(method: str, name: str, n: object, least: int, most: int | None = None) -> None:
    """Raise unless the value is a whole number of at least ``least``, and of at most ``most`` if that is given."""
    whole = check_whole(method, name, n)
    if whole < least:
        raise ValueError(f"{method}({name}={n}): {name} must be at least {least}")
    if most is not None and whole > most:
        raise ValueError(f"{method}({name}={n}): {name} must be at most {most}")


def check_flag(method: str, name: str, flag: object) -> None:
    """Raise unless the value is True or False, since another value would count as one of them."""
    if not isinstance(flag, bool):
        raise TypeError(f"{method}({name}={label(flag)}): {name} is True or False, not {type(flag).__name__}")


def check_seconds(method: str, name: str, seconds: object, *, above: bool = False) -> None:
    """Raise unless the value is a time span: a finite number of at least 0, or above it."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise TypeError(
            f"{method}({name}={label(seconds)}): {name} is a number of seconds, not {type(seconds).__name__}"
        )
    if not 0 <= seconds <= float_info.max or (above and not seconds):  # an int may be larger than any float
        raise ValueError(
            f"{method}({name}={label(seconds)}): {name} must be a finite number {'above' if above else 'of at least'} 0"
        )


def check_fraction(method: str, fraction: object) -> None:
    """Raise unless the value is a number from 0 to 1."""
    if not isinstance(fraction, (int, float)) or isinstance(fraction, bool):
        raise TypeError(f"{method}({label(fraction)}): a fraction is a number, not {type(fraction).__name__}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"{method}({fraction}): a fraction is from 0 to 1")
