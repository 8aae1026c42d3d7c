"""Flows of batches that stay batches; what demand counts, and what take and skip count."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from weakref import ref

import pytest

from reactive_aio import Batches, Flow
from tests.subscribers import ByHand, Recorder, idle


class Kind:
    """A kind of batch: how to make one of numbers, work on it as a whole, and list its elements."""

    def __init__(self, package: str, make: Callable[[Any, list[int]], Any]) -> None:
        self.package = package
        self._make = make

    def make(self, numbers: list[int]) -> Any:
        module = pytest.importorskip(self.package)
        return self._make(module, numbers)

    def column(self, batch: Any) -> list[int]:
        if self.package in {"pandas", "polars", "pyarrow"}:
            batch = batch["n"]
        return list(batch.to_pylist() if self.package == "pyarrow" else map(int, batch))


KINDS = {
    "list": Kind("builtins", lambda _, numbers: numbers),
    "tuple": Kind("builtins", lambda _, numbers: tuple(numbers)),
    "numpy": Kind("numpy", lambda numpy, numbers: numpy.array(numbers, dtype="int64")),
    "pandas": Kind("pandas", lambda pandas, numbers: pandas.DataFrame({"n": numbers}, dtype="int64")),
    "RecordBatch": Kind(
        "pyarrow", lambda arrow, numbers: arrow.RecordBatch.from_pydict({"n": arrow.array(numbers, arrow.int64())})
    ),
    "Table": Kind(
        "pyarrow", lambda arrow, numbers: arrow.Table.from_pydict({"n": arrow.array(numbers, arrow.int64())})
    ),
    "polars": Kind("polars", lambda polars, numbers: polars.DataFrame({"n": numbers}, schema={"n": polars.Int64})),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def odd(kind: Kind) -> Callable[[Any], Any]:
    """Make the mask of the odd elements."""

    def mask(batch: Any) -> Any:
        bools = [n % 2 == 1 for n in kind.column(batch)]
        return pytest.importorskip(kind.package).array(bools) if kind.package in {"numpy", "pyarrow"} else bools

    return mask


def cut(rng: random.Random, numbers: Sequence[int]) -> list[list[int]]:
    """Cut numbers into batches by chance, some of them empty."""
    edges = sorted([0, len(numbers), *(rng.randint(0, len(numbers)) for _ in range(rng.randint(0, 8)))])
    return [list(numbers[start:end]) for start, end in pairwise(edges)]


@kinds
@pytest.mark.parametrize("seed", range(20))
async def test_batches_give_what_elements_one_by_one_give(kind: Kind, seed: int) -> None:
    rng = random.Random(seed)
    numbers = [rng.randint(0, 99) for _ in range(rng.randint(0, 40))]
    batches = Batches(Flow.from_iterable([kind.make(each) for each in cut(rng, numbers)]))
    elements = Flow.from_iterable(numbers)
    for _ in range(rng.randint(1, 4)):
        step, n = rng.choice(["take", "skip", "filter", "map"]), rng.randint(0, 20)
        if step == "take":
            batches, elements = batches.take(n), elements.take(n)
        elif step == "skip":
            batches, elements = batches.skip(n), elements.skip(n)
        elif step == "filter":
            batches, elements = batches.filter(odd(kind)), elements.filter(lambda n: n % 2 == 1)
        else:
            batches = batches.map(lambda batch: kind.make([n + 1 for n in kind.column(batch)]))
            elements = elements.map(lambda n: n + 1)

    found = await batches.flow.to_list()

    assert await elements.to_list() == [n for batch in found for n in kind.column(batch)]


@kinds
async def test_a_batch_keeps_its_kind(kind: Kind) -> None:
    made = kind.make([1, 2, 3, 4])
    found = await Batches(Flow.of(made)).filter(odd(kind)).skip(1).take(1).flow.single()

    assert type(made) is type(found)
    assert [3] == kind.column(found)


async def test_a_batch_that_needs_no_cut_is_passed_on_as_it_is() -> None:
    batch = [1, 2]

    assert batch is await Batches(Flow.of(batch)).take(2).skip(0).flow.single()


async def test_a_batch_of_which_nothing_is_left_is_not_passed_on() -> None:
    batches = Batches(Flow.of([], [2, 4], [5]))

    assert [[5]] == await batches.filter(lambda batch: [n % 2 == 1 for n in batch]).flow.to_list()
    assert [[2, 4], [5]] == await batches.take(9).flow.to_list()
    assert [[5]] == await batches.skip(2).flow.to_list()


async def test_take_asks_for_no_more_batches_than_it_wants_elements_and_cancels_with_the_last() -> None:
    source, recorder = ByHand(), Recorder(100)
    Batches(Flow.from_publisher(source)).take(3).flow.subscribe(recorder)
    await idle()
    assert [3] == source.requests

    source.next([1, 2])
    source.next([3, 4])
    await idle()
    assert [[1, 2], [3]] == recorder.items
    assert "complete" == recorder.kinds[-1]
    assert source.cancels


async def test_take_of_nothing_reads_nothing() -> None:
    def batches() -> Any:
        raise AssertionError("was read")
        yield

    assert [] == await Batches(Flow.from_iterable(batches)).take(0).flow.to_list()


@pytest.mark.parametrize("wrong", [3, "abc", {1: 2}, None, iter([1])], ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("step", ["take", "skip", "filter"])
async def test_an_argument_that_is_no_batch_is_refused_by_name(wrong: Any, step: str) -> None:
    batches: Batches[Any] = Batches(Flow.of(wrong))
    stepped = batches.filter(lambda batch: [True]) if step == "filter" else getattr(batches, step)(1)
    with pytest.raises(TypeError, match=rf"Batches\.{step}\(\) takes batches.*{type(wrong).__name__}") as caught:
        await stepped.flow.drain()

    assert f"in Batches.{step}(" in caught.value.__notes__[0]


@pytest.mark.parametrize("name", ["numpy", "pandas"])
@pytest.mark.parametrize(
    "mask",
    [
        "ints",
        "a list of ints",
        "a column",
        "its name",
        "a tuple",
        "True",
        "None",
        "two dimensions",
        "an empty list",
        "an empty array",
        "an array of names",
    ],
)
async def test_an_array_takes_nothing_but_bools_for_a_mask(name: str, mask: str) -> None:
    """Numbers would choose elements by their places, and names columns."""
    numpy = pytest.importorskip("numpy")
    masks = {
        "ints": numpy.array([1, 0, 1]),
        "a list of ints": [1, 0, 1],
        "a column": ["n"],
        "its name": "n",
        "a tuple": (True, False, True),
        "True": True,
        "None": None,
        "two dimensions": numpy.ones((3, 1)) > 0,
        "an empty list": [],
        "an empty array": numpy.ones(0) > 0,
        "an array of names": numpy.array(["n"], dtype=object),
    }
    batches = Batches(Flow.of(KINDS[name].make([7, 8, 9])))

    with pytest.raises(TypeError, match=r"the predicate returned .*, but a mask has one bool for each element"):
        await batches.filter(lambda batch: masks[mask]).flow.drain()


class Kept:
    """A batch that is indexed by such a mask."""

    def __init__(self, items: list[int]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, mask: set[int]) -> Kept:
        return Kept([item for item in self.items if item in mask])


async def test_a_mask_of_a_kind_that_has_no_type_of_elements_is_left_to_the_batch() -> None:
    batches: Flow[Any] = Flow.of(Kept([7, 8, 9]))

    (left,) = await Batches(batches).filter(lambda batch: {8, 9}).flow.to_list()

    assert [8, 9] == left.items


async def test_a_mask_of_numpy_bools_in_a_list_is_one() -> None:
    numpy = pytest.importorskip("numpy")
    batches = Batches(Flow.of(numpy.array([7, 8, 9])))

    (left,) = await batches.filter(lambda batch: list(batch > 7)).flow.to_list()

    assert [8, 9] == left.tolist()


@pytest.mark.parametrize("dtype", ["bool", "object"])
async def test_a_column_of_bools_is_a_mask_and_one_of_names_is_none(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    batches = Batches(Flow.of(pandas.DataFrame({"n": [7, 8], "m": [1, 2]})))

    (left,) = await batches.filter(lambda _: pandas.Series([False, True], dtype=dtype)).flow.to_list()
    assert [8] == left["n"].tolist()

    with pytest.raises(TypeError, match="a mask has one bool for each element"):
        await batches.filter(lambda batch: batch.columns).flow.drain()


@pytest.mark.parametrize("mask", [[0, 2], "ab", None, 3], ids=repr)
async def test_a_list_takes_nothing_but_bools_for_a_mask(mask: Any) -> None:
    with pytest.raises(TypeError, match=r"the predicate returned .*, but a mask has one bool for each element"):
        await Batches(Flow.of([7, 8])).filter(lambda _: mask).flow.drain()


async def test_a_list_takes_a_mask_of_any_package() -> None:
    numpy, arrow = pytest.importorskip("numpy"), pytest.importorskip("pyarrow")
    for make in (numpy.array, arrow.array, iter):
        assert [[8]] == await Batches(Flow.of([7, 8])).filter(lambda _, make=make: make([False, True])).flow.to_list()


async def test_the_places_of_a_frame_are_counted_whatever_its_index_is() -> None:
    """pandas takes the bounds of a slice for labels where those are floats."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [7, 8, 9]}, index=[10.0, 20.0, 30.0])
    for batch in (frame, frame["n"]):
        (left,) = await Batches(Flow.of(batch)).skip(1).take(1).flow.to_list()
        assert [20.0] == left.index.tolist()


async def test_an_arrow_array_of_a_class_of_the_users_is_filtered_by_a_mask_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow")

    of_the_user = type("GramsArray", (arrow.ExtensionArray,), {"__module__": "shop"})
    methods = {"__arrow_ext_serialize__": lambda _: b"", "__arrow_ext_class__": lambda _: of_the_user}
    grams: Any = type("Grams", (arrow.ExtensionType,), methods)
    batch = arrow.ExtensionArray.from_storage(grams(arrow.int64(), "grams"), arrow.array([1, 2]))

    (left,) = await Batches(Flow.of(batch)).filter(lambda _: arrow.array([False, True])).flow.to_list()

    assert [2] == left.to_pylist()


async def test_a_mask_that_is_too_short_for_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="the mask has 1 values, but the batch has 2 elements"):
        await Batches(Flow.of([1, 2])).filter(lambda batch: [True]).flow.drain()


@pytest.mark.parametrize("step", ["take", "skip"])
def test_a_count_below_zero_is_refused_when_the_flow_is_built(step: str) -> None:
    with pytest.raises(ValueError, match=rf"Batches\.{step}\(n=-1\)"):
        getattr(Batches(Flow.of([1])), step)(-1)


def test_an_argument_that_is_no_flow_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Batches.*takes flows, not list"):
        Batches([[1]])


def test_an_async_predicate_is_refused_when_the_flow_is_built() -> None:
    async def later(batch: list[int]) -> list[bool]:
        return [True for _ in batch]

    with pytest.raises(TypeError, match=r"Batches\.filter"):
        Batches(Flow.of([1])).filter(later)


class Array(list[int]):
    """A batch that can be watched."""


@pytest.mark.parametrize("step", ["map", "filter"])
async def test_a_batch_is_held_until_the_next_one_is_there_and_no_longer_than_the_flow_runs(step: str) -> None:
    made: list[ref[Array]] = []
    seen: list[list[bool]] = []

    def arrays() -> Iterator[Array]:
        for n in range(4):
            seen.append([each() is not None for each in made])
            array = Array([n])
            made.append(ref(array))
            yield array
            del array

    batches = Batches(Flow.from_iterable(arrays))
    stepped = batches.map(len_of) if step == "map" else batches.filter(lambda batch: [False])
    kept = aiter(stepped.flow)  # an iterator that somebody keeps, after the end too
    async for _ in kept:
        pass

    # The source looks each time that it makes the next one.
    assert [[], [True], [False, True], [False, False, True]] == seen
    assert not any(each() for each in made)


def len_of(batch: Array) -> list[int]:
    """Return a batch that does not lead back to its input."""
    return [len(batch)]
