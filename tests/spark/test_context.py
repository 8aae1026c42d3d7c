"""The context variables that are named go to the workers with the values that the subscriber has."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from threading import Lock
from typing import Any, cast

import pytest

from reactive_aio import Flow, UnsupportedOnSparkError
from tests.schedulers import work

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_they_are_current_in_the_functions_and_gone_from_the_worker_afterwards(sc: Any, wire: str) -> None:
    work.trace.set("mine")
    work.other.set("mine too")
    data = sc.parallelize(range(2), 1)
    flow = Flow.from_spark(data, wire=wire, context=[work.trace]).map(work.seen)

    assert [("mine", "none")] * 2 == await flow.to_list()
    work.trace.set("changed")
    assert [("changed", "none")] * 2 == await flow.to_list()
    assert [("none", "none")] * 2 == await Flow.from_spark(data, wire=wire).map(work.seen).to_list()


async def seen(item: Any) -> tuple[str, str]:
    return work.seen(item)


async def test_they_are_current_in_what_is_awaited_too(sc: Any) -> None:
    work.trace.set("mine")
    flow = Flow.from_spark(sc.parallelize(range(2), 1), context=[work.trace])

    assert [("mine", "none")] * 2 == await flow.map_async(seen).to_list()


async def test_flows_that_are_put_together_have_each_its_own(sc: Any) -> None:
    work.trace.set("mine")
    work.other.set("mine too")
    data = sc.parallelize([1], 1)
    flows = [Flow.from_spark(data, context=[each]) for each in (work.trace, work.other)]

    assert [("mine", "none"), ("none", "mine too")] == await flows[0].concat(flows[1]).map(work.seen).to_list()


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_a_value_that_cannot_be_pickled_is_told_by_its_variable(sc: Any, wire: str) -> None:
    work.trace.set("mine")
    other: ContextVar[Any] = cast("Any", work.other)
    other.set(Lock())
    flow = Flow.from_spark(sc.parallelize([1]), wire=wire, context=[work.trace, work.other]).map(work.seen)

    with pytest.raises(TypeError, match="cannot pickle") as raised:
        await flow.to_list()
    note = "the context variable tests.schedulers.work.other has a value of type lock, which can't be pickled"
    assert [note] == raised.value.__notes__
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        flow.to_frame("a string, b string")
    assert [note] == raised.value.__notes__


def test_what_no_worker_could_find_is_refused(sc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: ContextVar[int] = ContextVar("hidden")
    with pytest.raises(TypeError, match=r"from_spark\(context=\.\.\.\): 'hidden' is no global of a module"):
        Flow.from_spark(sc.parallelize([1]), context=[hidden])
    monkeypatch.setattr(sys.modules["__main__"], "hidden", hidden, raising=False)
    with pytest.raises(UnsupportedOnSparkError, match="'hidden' is a global of the main module"):
        Flow.from_spark(sc.parallelize([1]), context=[hidden])
