"""Types become narrower where a function says so: read by mypy and pyright in strict mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard, assert_type

from reactive_aio import Flow, KeyedFlow
from reactive_aio.testing import StreamProbe

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def is_number(value: object) -> TypeIs[int]:
    return isinstance(value, int)


def test_a_filter_narrows_by_its_predicate() -> None:
    flow = Flow.of(1, "a")
    assert_type(flow.filter(is_number), Flow[int])


def test_a_filter_for_each_key_narrows_by_its_predicate() -> None:
    keyed = Flow.of(1).concat(Flow.of("a")).group_by_key(str)
    assert_type(keyed.filter(is_text), KeyedFlow[str, str])
    assert_type(keyed.filter(is_number), KeyedFlow[str, int])
    assert_type(keyed.filter(bool), KeyedFlow[str, int | str])


async def errors_of_a_probe(probe: StreamProbe[int]) -> None:
    """Never called: it is about types."""
    assert_type(await probe.expect_error(), Exception)
    assert_type(await probe.expect_error(OSError, match="down"), OSError)
    assert_type(await probe.expect_error((OSError,)), OSError)
