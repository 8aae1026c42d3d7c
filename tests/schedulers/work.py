"""Functions for worker processes, which import them by name."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from attrs import define

from reactive_aio._fusion import Stage

trace: ContextVar[str] = ContextVar("trace", default="none")
other: ContextVar[str] = ContextVar("other", default="none")


class OddError(Exception):
    """Can't be called with the arguments that it keeps."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class HeldError(Exception):
    """Can't be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class FalseError(Exception):
    """Is false, as an exception with a length may be."""

    def __bool__(self) -> bool:
        return False


class NeitherError(Exception):
    """Is neither true nor false."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class OwnError(BaseException):
    pass


ODD = [FalseError, NeitherError, OwnError, GeneratorExit, asyncio.CancelledError, SystemExit, KeyboardInterrupt]
"""Kinds of exceptions that are raised by functions as any other may be."""


class Raising:
    """A function that raises one of these kinds for an element."""

    def __init__(self, kind: type[BaseException], at: int = 2) -> None:
        self.kind, self.at = kind, at

    def __call__(self, n: int) -> int:
        if n == self.at:
            raise self.kind("odd")
        return n


class Unpicklable:
    """Raises when it is pickled."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __reduce__(self) -> Any:
        raise self.kind("odd")


class Homeless:
    """Raises when it is unpickled in another process than where it was made, and after that anywhere."""

    def __init__(self, kind: type[BaseException], home: int | None = None) -> None:
        self.kind, self.home = kind, os.getpid()
        if home is not None and home != self.home:
            raise kind("odd")

    def __reduce__(self) -> Any:
        return Homeless, (self.kind, self.home)


def homeless(kind: type[BaseException] | int) -> Homeless | int:
    return kind if isinstance(kind, int) else Homeless(kind)


class Stuck:
    """A function that makes a generator whose end raises one of these kinds."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __call__(self, n: int) -> Iterator[int]:
        try:
            while True:
                yield n
        finally:
            raise self.kind("stuck")


@define
class StuckStage(Stage[Any, Any]):
    """Passes elements on, and can't let go."""

    def apply(self, items: Iterator[Any]) -> Iterator[Any]:
        return items

    def close(self) -> None:
        raise OSError("stuck")


def lock_then_fail(n: int) -> Any:
    if n == 1:
        raise ValueError("behind")
    return threading.Lock()


def fail_when_let(path: str) -> None:
    """Fail when somebody has written, or will not."""
    Path(path).read_bytes()
    raise ValueError("late")


def same(item: Any) -> Any:
    return item


def square(n: int) -> int:
    return n * n


def pid(_: Any) -> int:
    return os.getpid()


def busy(n: int) -> int:
    """Keep a processor busy for a while."""
    until = time.perf_counter() + 2e-4
    while time.perf_counter() < until:
        pass
    return n


def divide(n: int) -> float:
    return 1 / (5 - n)


def raise_odd(n: int) -> int:
    raise OddError(code=n)


def raise_held(n: int) -> int:
    raise HeldError(f"held {n}")


def lock_at_3(n: int) -> Any:
    return threading.Lock() if n == 3 else n


def exit_at_3(n: int) -> int:
    if n == 3:
        os._exit(7)
    return n


def kill_at_3(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def kill_at_third(data: bytes) -> bytes:
    kill_at_3(data[0])
    return data


def seen(_: Any) -> tuple[str, str]:
    return trace.get(), other.get()


def many(n: int) -> Iterator[int]:
    yield from range(n)


class Tallied:
    """A function that makes large results, and leaves a byte in a file for each."""

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size

    def __call__(self, n: int) -> Iterator[bytes]:
        with Path(self.path).open("ab", buffering=0) as file:
            for _ in range(n):
                file.write(b".")
                yield bytes(self.size)


def forever(path: str) -> None:
    """Leave a sign, and never return."""
    Path(path).write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def addresses(array: Any) -> tuple[bool, float]:
    return array.flags.writeable, float(array.sum())


def raised_by_one(array: Any) -> Any:
    array += 1
    return array


def zeros(n: int) -> Any:
    import numpy as np

    return np.zeros(n)


class NeverBegins:
    """Keeps any process but the first where it unpickles it."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __setstate__(self, state: dict[str, int]) -> None:
        while state["home"] != os.getpid():
            time.sleep(1)
        self.home = state["home"]

    def __call__(self, n: int) -> int:
        return n


class DiesHere:
    """Ends any process that unpickles it but the first."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __setstate__(self, state: dict[str, int]) -> None:
        if state["home"] != os.getpid():
            os._exit(9)

    def __call__(self, n: int) -> int:
        return n
