"""Large pieces of memory in the elements that leave the workers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow
from reactive_aio._remote.frames import Decoder
from reactive_aio.spark._results.task import Kept

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.spark


def test_they_travel_beside_the_pickle() -> None:
    outlet = Kept(0)
    outlet.hear()
    assert outlet.send([np.arange(10**5), "small"]) is None
    (data,) = outlet.taken()
    (frame,) = Decoder().feed(data)

    assert 1_000 > len(frame.pickled)
    assert [800_000] == [len(memoryview(each)) for each in frame.buffers]
    array, small = frame.loads()
    assert (list(range(10**5)), "small") == (array.tolist(), small)


def test_those_before_an_element_that_cannot_be_pickled_keep_their_own() -> None:
    outlet = Kept(0)
    outlet.hear()
    failure = outlet.send([np.arange(10**5), np.arange(10**4), threading.Lock()])
    (data,) = outlet.taken()
    (frame,) = Decoder().feed(data)

    assert type(failure) is TypeError
    assert [10**5, 10**4] == [len(each) for each in frame.loads()]


def test_chunks_grow_while_they_are_small_and_shrink_where_elements_turn_large() -> None:
    outlet = Kept(0)
    found: list[int] = []
    for size in [1] * 7 + [1 << 16] * 2 + [1]:
        outlet.granted = outlet.largest
        outlet.send([b"x" * size] * outlet.largest if size == 1 else [bytes([n % 256]) * size for n in range(16)])
        found.append(outlet.largest)

    assert [128, 256, 512, 1024, 2048, 2048, 2048, 15, 15, 30] == found


@pytest.mark.parametrize("wire", ["tcp", "results"])
async def test_arrays_and_parts_of_tables_arrive_on_the_loop(sc: Any, wire: str) -> None:
    def made(n: int) -> Any:
        import numpy as np
        import pyarrow as pa

        return np.full(10**5, n), pa.table({"n": range(10**5)}).slice(n, 2)

    found = await Flow.from_spark(sc.parallelize(range(3), 2), wire=wire).map(made).to_list()

    assert [n * 10**5 for n in range(3)] == [int(array.sum()) for array, _ in found]
    assert [[0, 1], [1, 2], [2, 3]] == [table.column("n").to_pylist() for _, table in found]
