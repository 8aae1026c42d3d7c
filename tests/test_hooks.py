"""The hooks: they are set for a block, and what they raise hides nothing."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from reactive_aio import SourceCancelledError, hooks


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """An exception whose attributes can't be set, not even the traceback."""

    code: int = 7


class Outcome(BaseException):
    """An exception outside of `Exception`."""


def test_whatever_leaves_the_block_is_left_as_it_is() -> None:
    with pytest.raises(FrozenError), hooks.using(on_discard=print, on_error_dropped=print):
        raise FrozenError


def test_behind_the_block_the_hooks_are_those_of_before() -> None:
    outer, inner = list[object](), list[object]()
    with hooks.using(on_discard=outer.append):
        setting = hooks.using(on_discard=inner.append)
        with setting:
            hooks.discard([1])
        with setting:
            hooks.discard([2])
        hooks.discard([3])

    assert ([3], [1, 2]) == (outer, inner)


@pytest.mark.parametrize("error", [OSError(), Outcome(), GeneratorExit(), asyncio.CancelledError()])
async def test_an_exception_of_a_hook_is_reported_and_not_raised(error: BaseException) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told["exception"]))

    def fails(_: object) -> None:
        raise error

    with hooks.using(on_discard=fails, on_error_dropped=fails):
        hooks.discard(["element"])

    first, second = reported
    assert error is first
    assert error is (second.__cause__ if isinstance(second, SourceCancelledError) else second)
