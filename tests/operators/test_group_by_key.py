"""Operators on the elements of each key, on the event loop."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Generator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import groupby, pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive_aio import Flow, KeyedFlow, LimitExceededError, hooks
from reactive_aio.operators.windowing.by_key import OfKey
from reactive_aio.operators.windowing.keys import hashed, in_bytes

Keyed = Callable[[KeyedFlow[int, int]], Any]
WORK: dict[str, tuple[Keyed, Callable[[list[int]], list[Any]]]] = {
    "map": (lambda k: k.map(str).pairs(), lambda ns: list(map(str, ns))),
    "filter": (lambda k: k.filter(lambda n: n % 2).pairs(), lambda ns: [n for n in ns if n % 2]),
    "scan": (lambda k: k.scan(max, 3).pairs(), lambda ns: [max([3, *ns[:end]]) for end in range(len(ns) + 1)]),
    "pairwise": (lambda k: k.pairwise().pairs(), lambda ns: list(pairwise(ns))),
    "buffer": (lambda k: k.buffer(2).pairs(), lambda ns: [ns[at : at + 2] for at in range(0, len(ns), 2)]),
    "buffer_until_changed": (
        lambda k: k.buffer_until_changed().pairs(),
        lambda ns: [list(run) for _, run in groupby(ns)],
    ),
    "take": (lambda k: k.take(2).pairs(), lambda ns: ns[:2]),
    "take none": (lambda k: k.take(0).pairs(), lambda _: []),
    "take and buffer": (lambda k: k.take(3).buffer(2).pairs(), lambda ns: [part for part in (ns[:2], ns[2:3]) if part]),
    "top_k": (lambda k: k.top_k(2).pairs(), lambda ns: [sorted(ns, reverse=True)[:2]]),
    "count": (lambda k: k.count(), lambda ns: [len(ns)]),
    "fold": (lambda k: k.fold(lambda text, n: f"{text} {n}", ""), lambda ns: ["".join(f" {n}" for n in ns)]),
    "reduce": (lambda k: k.reduce(lambda a, b: a - b), lambda ns: [ns[0] - sum(ns[1:])]),
    "nothing": (lambda k: k.pairs(), lambda ns: ns),
}


def by_key(pairs: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def third(n: int) -> int:
    return n % 3


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("order_by", [None, lambda n: -n], ids=["as they come", "sorted"])
@pytest.mark.parametrize("size", [0, 1, 5, 30])
def test_each_key_has_what_a_flow_of_its_elements_alone_would_give(
    name: str, order_by: Callable[[int], int] | None, size: int
) -> None:
    work, oracle = WORK[name]
    draw = Random(f"{name} {size}")
    ns = [draw.randint(-9, 9) for _ in range(size)]
    ordered = ns if order_by is None else sorted(ns, key=order_by)
    expected = {key: values for key, its in by_key([(third(n), n) for n in ordered]).items() if (values := oracle(its))}

    assert expected == by_key(work(Flow.from_iterable(ns).group_by_key(third, order_by=order_by)).run_sync())


def test_values_come_as_soon_as_their_key_has_them_and_the_rest_in_the_order_of_the_keys() -> None:
    flow = Flow.of(4, 1, 3, 6, 9).group_by_key(lambda n: n % 2).buffer(2).pairs()

    assert [(1, [1, 3]), (0, [4, 6]), (1, [9])] == flow.run_sync()


def test_no_element_is_asked_for_before_what_came_of_the_one_before_has_been_taken() -> None:
    asked: list[int] = []
    flow = Flow.range(9).do_on_next(asked.append).group_by_key(third).map(str).pairs().take(4)

    assert [(0, "0"), (1, "1"), (2, "2"), (0, "3")] == flow.run_sync()
    assert [0, 1, 2, 3] == asked


def test_one_key_more_than_there_may_be_is_a_failure_behind_what_came_of_the_others() -> None:
    got: list[tuple[int, int]] = []

    flow = Flow.range(5).group_by_key(abs, max_keys=3).pairs().do_on_next(got.append)

    with pytest.raises(LimitExceededError, match=r"group_by_key\(max_keys=3\) has no room for another key, 3"):
        flow.run_sync()
    assert [(0, 0), (1, 1), (2, 2)] == got


def test_more_elements_of_a_key_than_may_be_sorted_are_a_failure() -> None:
    flow = Flow.of(1, 4, 2, 7).group_by_key(third, order_by=abs, max_size=2).count()

    with pytest.raises(LimitExceededError, match=r"group_by_key\(max_size=2\) has no room to sort another") as failed:
        flow.run_sync()
    assert failed.value.__notes__[0].startswith(f"in group_by_key(order_by=abs), chained at {__file__}:")


def test_a_failure_names_the_operator_its_line_and_the_key() -> None:
    flow = Flow.of(3, 1, 4).group_by_key(third).map(lambda n: 1 // (n - 4)).pairs()

    with pytest.raises(ZeroDivisionError) as failed:
        flow.run_sync()
    notes = failed.value.__notes__
    assert notes[0].startswith("in map(<lambda>), chained at ")
    assert notes[0].endswith("on element #1 of the elements of key 1")
    assert notes[1].startswith("in group_by_key(third -> map(<lambda>)), chained at ")


def test_a_failure_of_the_source_is_not_laid_to_the_operators_of_a_key() -> None:
    flow = Flow.of(3, 0).map(lambda n: 1 // n).group_by_key(third).map(str).pairs()

    with pytest.raises(ZeroDivisionError) as failed:
        flow.run_sync()
    assert 1 == len(failed.value.__notes__)
    assert failed.value.__notes__[0].startswith("in map(<lambda>), chained at ")


def test_what_the_operators_of_all_keys_hold_is_discarded_when_the_flow_fails() -> None:
    discarded: list[int] = []
    flow = Flow.of(0, 1, 2, 3, 5).map(lambda n: 10 // (5 - n) and n).group_by_key(third).buffer(3).pairs()

    with hooks.using(on_discard=discarded.append), pytest.raises(ZeroDivisionError):
        flow.run_sync()
    assert [0, 1, 2, 3] == sorted(discarded)


def test_a_flow_of_keys_is_built_once_and_run_as_often_as_one_likes() -> None:
    flow = Flow.of(1, 2, 4).group_by_key(third).buffer(2).pairs()

    assert flow.run_sync() == flow.run_sync() == [(1, [1, 4]), (2, [2])]


# -- what equal and less mean

BERLIN = ZoneInfo("Europe/Berlin")
EQUAL: list[list[Any]] = [
    [1, True, 1.0, Decimal(1), Decimal("1.00")],
    [0, False, 0.0, -0.0, Decimal("-0")],
    [math.nan, float("nan"), Decimal("nan"), Decimal("snan")],
    [(1, "a", None), (True, "a", None), (1.0, "a", None)],
    [(math.nan, 1), (float("nan"), 1)],
    [Decimal("0.1")],
    [0.1],
    [None],
    ["1"],
    [b"1"],
    [()],
    [(None,)],
    [(0,)],
    [("a\0",)],
    [("a", "")],
    [datetime(2024, 10, 27, 2, 30), datetime(2024, 10, 27, 2, 30, fold=1)],
    [datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 10, 27, 0, 30, tzinfo=UTC)],
    [datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)],
    [datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))],
]


def test_keys_are_equal_in_a_dict_and_in_bytes_where_python_says_so_and_so_are_nans_and_times_of_one_instant() -> None:
    for keys in EQUAL:
        assert 1 == len({hashed(key) for key in keys}) == len({in_bytes(key) for key in keys}), keys
    assert len(EQUAL) == len({hashed(keys[0]) for keys in EQUAL}) == len({in_bytes(keys[0]) for keys in EQUAL})


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-20, 20),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.booleans(),
)
ALIKE = st.sampled_from([NUMBERS, st.text(), st.binary(), st.dates(), st.datetimes(), st.timedeltas(), st.times()])


@pytest.mark.costly
@given(pair=ALIKE.flatmap(lambda kind: st.tuples(st.tuples(kind, NUMBERS), st.tuples(kind, NUMBERS))))
def test_bytes_are_less_where_keys_are_and_equal_where_keys_are(pair: tuple[Any, Any]) -> None:
    one, other = pair

    assert (one < other) == (in_bytes(one) < in_bytes(other))
    assert (one == other) == (in_bytes(one) == in_bytes(other))
    assert (one[0] < other[0]) == (in_bytes(one[0]) < in_bytes(other[0]))


def test_numbers_of_any_size_are_in_order() -> None:
    near_zero = ["1E-9999999999999", "2E-9999999999999", "1E-2147483649", "1E-2147483648", "1E-2147483647"]
    far_away = ["1E+2147483646", "1E+2147483647", "1E+2147483648", "2E+9999999999999", "Infinity"]
    whole = [10**size + more for size in (4_299, 4_300, 5_000) for more in (0, 1)]
    above: list[Any] = [*map(Decimal, near_zero), *whole, *map(Decimal, far_away)]
    numbers = [*(n.copy_negate() if isinstance(n, Decimal) else -n for n in reversed(above)), 0, *above]

    assert numbers == sorted(numbers, key=in_bytes)
    assert len(numbers) == len({in_bytes(n) for n in numbers})
    assert in_bytes(Decimal("1E+5000")) == in_bytes(10**5_000)
    assert in_bytes(math.inf) == in_bytes(Decimal("Infinity"))


def test_an_argument_that_is_no_scalar_is_refused_as_an_order() -> None:
    flow = Flow.of(1).group_by_key(third, order_by=lambda n: [n]).pairs()

    with pytest.raises(TypeError, match=r"can't be a key that is sorted or sent to Spark.*not list"):
        flow.run_sync()


class Span(timedelta):
    pass


class Day(date):
    pass


class Moment(datetime):
    pass


class Clock(time):
    pass


@pytest.mark.parametrize(
    ("key", "kind"),
    [(Span(1), "timedelta"), (Day(2024, 1, 2), "date"), (Moment(2024, 1, 2), "datetime"), (Clock(1), "time")],
    ids=lambda each: type(each).__name__,
)
def test_a_subclass_of_a_time_may_be_finer_than_the_bytes_and_is_refused(key: Any, kind: str) -> None:
    for each in (key, ("a", key)):
        with pytest.raises(TypeError, match=rf"can't be a key .* not {type(key).__name__}\. Convert it to a {kind} of"):
            in_bytes(each)


def test_times_of_pandas_which_have_nanoseconds_are_refused_as_keys() -> None:
    pandas: Any = pytest.importorskip("pandas")

    for key in (pandas.Timedelta(1), pandas.Timestamp(1), pandas.Timestamp(1, tz="UTC"), pandas.NaT):
        with pytest.raises(TypeError, match=f"can't be a key .* not {type(key).__name__}"):
            in_bytes(key)


def test_what_stands_for_a_missing_value_in_pandas_is_a_key_like_others() -> None:
    pandas: Any = pytest.importorskip("pandas")
    for missing in (pandas.NaT, pandas.NA, ("a", pandas.NA)):
        keys = [missing, "a", ("a", "b"), missing, pandas.Timestamp(1), missing]
        counts = Flow.range(len(keys)).group_by_key(keys.__getitem__).count().run_sync()

        assert [3, 1, 1, 1] == [count for _, count in counts]
        assert missing is counts[0][0]


def test_any_nan_equals_any_other_of_whatever_type_of_number() -> None:
    numpy: Any = pytest.importorskip("numpy")
    nans: list[Any] = [numpy.float32("nan"), numpy.float16("nan"), numpy.float64("nan"), complex("nan"), math.nan]

    assert [5] == Flow.of(*nans).group_by_key(lambda nan: nan).count().map(lambda pair: pair[1]).run_sync()


def test_a_method_of_a_flow_is_found_behind_pairs() -> None:
    keyed: Any = Flow.of(1).group_by_key(hash)

    with pytest.raises(
        AttributeError, match=r"has no attribute 'to_list'\. Call pairs\(\) first: \.pairs\(\)\.to_list$"
    ):
        keyed.to_list()
    with pytest.raises(AttributeError, match=r"^KeyedFlow has no attribute 'lists'$"):
        keyed.lists()


@pytest.mark.parametrize("flag", ["no", 1, None])
def test_whether_any_order_will_do_is_true_or_false(flag: Any) -> None:
    keyed = Flow.of(1).group_by_key(bool)

    with pytest.raises(TypeError, match=r"fold\(any_order=.*: any_order is True or False"):
        keyed.fold(max, 0, any_order=flag)
    with pytest.raises(TypeError, match=r"reduce\(any_order=.*: any_order is True or False"):
        keyed.reduce(max, any_order=flag)


def test_a_plan_names_the_method_that_was_called() -> None:
    keyed = Flow.range(3).group_by_key(abs)

    assert "group_by_key(abs -> fold(max, 0))" in keyed.fold(max, 0).describe()
    assert "group_by_key(abs -> reduce(max))" in keyed.reduce(max).describe()


# -- the end


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keep the keys whose state is closed."""
    keys: list[int] = []
    close = OfKey.close

    def closing(run: OfKey) -> None:
        keys.append(run.key)
        close(run)

    monkeypatch.setattr(OfKey, "close", closing)
    return keys


FAILING = Flow.range(100).concat(Flow[int].error(ValueError("no more")))


def test_where_no_stage_holds_anything_only_the_latest_key_is_closed(closed: list[int]) -> None:
    assert 50 == len(Flow.range(100).group_by_key(abs).map(abs).pairs().take(50).run_sync())
    assert [49] == closed

    closed.clear()
    with pytest.raises(ValueError, match="no more"):
        FAILING.group_by_key(abs).map(abs).pairs().run_sync()
    assert [99] == closed


def test_where_a_stage_holds_something_all_keys_are_closed(closed: list[int]) -> None:
    with pytest.raises(ValueError, match="no more"):
        FAILING.group_by_key(abs).buffer(2).pairs().run_sync()
    assert set(range(100)) == set(closed)


def test_a_key_is_closed_in_the_middle_of_its_last_elements(closed: list[int]) -> None:
    assert [(0, 1)] == Flow.range(100).group_by_key(abs).count().take(1).run_sync()
    assert [0] == closed


async def test_the_ends_of_many_keys_that_hold_nothing_take_several_turns(
    still: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    ends: list[int] = []
    finish = OfKey.finish

    def slow(run: OfKey) -> Generator[Any]:
        still[0] += 2e-3
        ends.append(len(turns))
        return finish(run)

    monkeypatch.setattr(OfKey, "finish", slow)
    task = asyncio.ensure_future(Flow.range(40).group_by_key(abs).map(abs).pairs().count())
    while not task.done():
        turns.append(1)
        await asyncio.sleep(0)

    assert 40 == await task
    assert 40 == len(ends)
    assert max(Counter(ends).values()) <= 2
