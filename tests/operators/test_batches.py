"""map_batches: a function of many elements at once, whatever the flow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from attrs import frozen

from reactive_aio import Flow
from reactive_aio.operators.transforming.map_batches import columns_of
from tests.subscribers import Recorder, idle


def test_batches_have_the_size_but_for_the_last() -> None:
    sizes: list[int] = []

    def negated(items: list[int]) -> Iterator[int]:
        sizes.append(len(items))
        return (-n for n in items)

    assert [0, -1, -2, -3, -4, -5, -6] == Flow.range(7).map_batches(negated, size=3).run_sync()
    assert [3, 3, 1] == sizes


def test_no_element_is_no_batch() -> None:
    assert [] == Flow.range(0).map_batches(lambda items: [1 // 0]).run_sync()


def test_a_batch_may_give_any_number_of_elements() -> None:
    assert [0, 1, 2, 3, 4] == Flow.range(5).map_batches(lambda items: [sum(items)] * 0 or items, size=2).run_sync()
    assert [1, 5, 4] == Flow.range(5).map_batches(lambda items: [sum(items)], size=2).run_sync()
    assert [] == Flow.range(5).map_batches(lambda _: (), size=2).run_sync()


async def test_a_batch_is_made_when_an_element_of_it_is_wanted() -> None:
    taken, calls, recorder = list[int](), list[list[int]](), Recorder(request=1)

    def tell(items: list[int]) -> list[int]:
        calls.append(items)
        return items

    Flow.range(9).do_on_next(taken.append).map_batches(tell, size=2).subscribe(recorder)
    await idle()
    assert [0] == recorder.items
    recorder.request(1)
    await idle()
    assert [0, 1] == recorder.items
    assert [0, 1] == taken
    assert [[0, 1]] == calls
    recorder.cancel()
    await idle()


def test_a_failure_comes_behind_what_came_of_the_batches_before_it() -> None:
    got: list[int] = []

    def fail(items: list[int]) -> list[int]:
        return [1 // (5 - n) for n in items]

    with pytest.raises(ZeroDivisionError) as failed:
        Flow.range(9).map_batches(fail, size=3).do_on_next(got.append).run_sync()
    assert [0, 0, 0] == got
    assert failed.value.__notes__[0].startswith("in map_batches(fail, 3), chained at ")


# -- tables


class Named(NamedTuple):
    n: int
    s: str


@frozen
class Attrs:
    n: int
    s: str


@dataclasses.dataclass
class Data:
    n: int
    s: str


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ([{"n": 1, "s": "a"}, {"n": 2, "s": "b"}], {"n": [1, 2], "s": ["a", "b"]}),
        ([{"n": 1}, {"s": "b"}], {"n": [1, None], "s": [None, "b"]}),
        ([(1, "a"), (2, "b")], {"_1": [1, 2], "_2": ["a", "b"]}),
        ([Named(1, "a"), Named(2, "b")], {"n": [1, 2], "s": ["a", "b"]}),
        ([Attrs(1, "a"), Attrs(2, "b")], {"n": [1, 2], "s": ["a", "b"]}),
        ([Data(1, "a"), Data(2, "b")], {"n": [1, 2], "s": ["a", "b"]}),
        ([1, 2], {"value": [1, 2]}),
    ],
    ids=lambda value: type(value[0]).__name__ if isinstance(value, list) else "",
)
def test_the_fields_of_elements_are_columns(items: list[Any], columns: dict[str, list[Any]]) -> None:
    assert columns == columns_of(items)


def test_a_batch_may_be_a_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")

    def doubled(frame: Any) -> Iterable[Any]:
        assert isinstance(frame, pandas.DataFrame)
        return [2 * n for n in frame.n.tolist()]

    flow = Flow.range(5).map(lambda n: {"n": n})
    assert [0, 2, 4, 6, 8] == flow.map_batches(doubled, size=2, as_=pandas.DataFrame).run_sync()


@pytest.mark.parametrize("name", ["Table", "RecordBatch"])
def test_a_batch_may_be_a_table_of_arrow(name: str) -> None:
    kind: type[Any] = getattr(pytest.importorskip("pyarrow"), name)

    def doubled(table: Any) -> Iterable[Any]:
        assert isinstance(table, kind)
        return [2 * n for n in table.column("value").to_pylist()]

    assert [0, 2, 4, 6, 8] == Flow.range(5).map_batches(doubled, size=2, as_=kind).run_sync()


def test_a_table_is_refused_as_a_result_for_it_would_give_its_columns() -> None:
    pandas = pytest.importorskip("pandas")

    with pytest.raises(TypeError, match=r'gave a DataFrame, .*: give its rows, by .to_dict\("records"\)'):
        Flow.range(5).map_batches(lambda frame: frame, as_=pandas.DataFrame).run_sync()


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda flow: flow.map_batches(list, size=0), ValueError, "size must be at least 1"),
        (
            lambda flow: flow.map_batches(list, as_=set),
            TypeError,
            "map_batches(as_=set): a batch is one of list, pandas",
        ),
        (lambda flow: flow.map_batches(7), TypeError, "takes a function, not int"),
    ],
)
def test_bad_input_is_refused_when_the_flow_is_built(
    build: Callable[[Flow[int]], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as refused:
        build(Flow.range(3))
    assert words in str(refused.value)
