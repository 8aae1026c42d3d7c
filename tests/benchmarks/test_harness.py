"""The harness: fair turns, checked results, and who is absent is named."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from benchmarks.harness import CPU, QUICK, WALL, Bar, Contestant, Effort, Figures, Row, measure
from benchmarks.workload import Field, LoopFactory, Workload, loop_kinds

ONCE = Effort(0.001, 3)


@pytest.fixture(autouse=True)
def uncollected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured here, and in the process of the tests a collection takes long."""
    monkeypatch.setattr("benchmarks.harness.gc", SimpleNamespace(collect=lambda: 0))


def fixed(name: str, value: float, needs: str = "") -> Contestant:
    """A contestant who measures for himself."""
    return Contestant(name, lambda: Figures({"size": value}), needs=needs)


def sizes(*contestants: Contestant, bars: tuple[Bar, ...] = (), limit: str = "") -> Row:
    return Row("sizes", 1, contestants, bars, metrics=("size",), limit=limit)


def test_contestants_take_turns_and_nobody_always_follows_the_same_one() -> None:
    turns: list[str] = []

    def takes(name: str) -> Contestant:
        return Contestant(name, lambda: turns.append(name))

    measure(Row("turns", 1, (takes("a"), takes("b"), takes("c")), rounds=6), Effort(0.0, 6))

    first, *rounds = ["".join(turns[at : at + 3]) for at in range(0, len(turns), 3)]
    assert "abc" == first
    assert [order[::-1] for order in rounds[::2]] == rounds[1::2]
    assert set("abc") == {order[0] for order in rounds}
    assert {"ab", "ba", "ac", "ca", "bc", "cb"} == {order[at : at + 2] for order in rounds for at in (0, 1)}


@pytest.mark.parametrize(("warms", "median"), [(True, 4.0), (False, 2.0)])
def test_rounds_that_warm_up_do_not_count(warms: bool, median: float) -> None:
    figures = itertools.count()
    slower = Contestant("slower each time", lambda: Figures({"size": float(next(figures))}))

    (measured,) = measure(Row("sizes", 1, (slower,), warm=2, metrics=("size",)), Effort(0.001, 3, warms)).measured

    assert median == measured.figures["size"].median


def test_contestants_who_disagree_end_the_run() -> None:
    row = Row("sum", 1, (Contestant("right", lambda: 3), Contestant("wrong", lambda: 4)))

    with pytest.raises(AssertionError, match="'sum' disagree"):
        measure(row, ONCE)


def test_a_result_that_is_not_the_expected_one_ends_the_run() -> None:
    row = Row("count", 100, (Contestant("one short", lambda n: n - 1, sized=True),), expect=lambda n: n)

    with pytest.raises(AssertionError, match="'one short' in 'count': 99 is not 100"):
        measure(row, ONCE)


def test_who_cannot_be_imported_is_named_with_the_reason() -> None:
    row = sizes(fixed("ours", 1), fixed("theirs", 2, needs="no_such_module"))

    ours, theirs = measure(row, ONCE).measured

    assert not ours.absent
    assert theirs.absent.startswith("no_such_module can't be imported: ModuleNotFoundError")
    assert not theirs.figures


def test_a_peer_that_fails_is_named_and_the_others_go_on() -> None:
    def fail() -> None:
        raise OSError("of old age")

    ours, theirs = measure(sizes(fixed("ours", 1), Contestant("theirs", fail, needs="json")), ONCE).measured

    assert ours.figures["size"].median == 1
    assert theirs.absent == "failed: OSError('of old age')"


def test_a_contestant_of_our_own_that_fails_ends_the_run() -> None:
    def fail() -> None:
        raise OSError("of old age")

    with pytest.raises(OSError, match="of old age"):
        measure(sizes(Contestant("ours", fail)), ONCE)


def test_who_is_slow_gets_fewer_elements() -> None:
    handed: dict[str, int] = {}

    def work(name: str, effort: int) -> Contestant:
        def run(n: int) -> int:
            handed[name] = n
            sum(range(effort * n))
            return n

        return Contestant(name, run, sized=True)

    row = Row(
        "speed", 100_000, (work("limit", 1), work("fast", 1), work("slow", 2_000)), limit="limit", expect=lambda n: n
    )
    measured = {each.name: each.elements for each in measure(row, QUICK).measured}

    assert measured == handed
    assert measured["slow"] < measured["fast"]


def test_ours_and_the_limit_get_the_same_number_of_elements() -> None:
    def work(effort: int) -> Contestant:
        return Contestant(str(effort), lambda n: sum(range(effort * n)) and n, sized=True)

    ours, limit = measure(Row("speed", 100_000, (work(100), work(1)), limit="1", expect=lambda n: n), ONCE).measured

    assert ours.elements == limit.elements


def test_times_are_for_one_element_by_both_clocks() -> None:
    (measured,) = measure(Row("sleepless", 1_000, (Contestant("ours", lambda: sum(range(10**5))),)), ONCE).measured

    assert set(measured.figures) == {CPU, WALL}
    assert 0 < measured.figures[WALL].low <= measured.figures[WALL].median <= measured.figures[WALL].high


def test_a_ratio_is_taken_within_a_round() -> None:
    sizes_of = {"ours": iter([0.0, 10.0, 200.0, 3_000.0]), "limit": iter([0.0, 5.0, 100.0, 1_000.0])}

    def grows(name: str) -> Contestant:
        return Contestant(name, lambda: Figures({"size": next(sizes_of[name])}))

    ours, limit = measure(sizes(grows("ours"), grows("limit"), limit="limit"), ONCE).measured

    assert ours.ratio is not None
    assert (ours.ratio.low, ours.ratio.median, ours.ratio.high) == (2, 2, 3)
    assert limit.ratio is not None
    assert limit.ratio.median == 1


@pytest.mark.parametrize(
    ("bar", "shown", "met"),
    [
        (Bar("limit", at_most=1.3), "1.20x", True),
        (Bar("limit", at_most=1.1), "1.20x", False),
        (Bar("peer", times_faster=8), "10.0x", True),
        (Bar("peer", times_faster=11), "10.0x", False),
        (Bar(at_most=12), "12", True),
        (Bar(at_most=11), "12", False),
        (Bar("limit", at_most=20, of="peer"), "12.00x", True),
        (Bar("lost", at_most=1), "not measured", None),
    ],
)
def test_a_bar_is_met_or_missed_or_not_measured(bar: Bar, shown: str, met: bool | None) -> None:
    lost = fixed("lost", 1, needs="no_such_module")
    row = sizes(fixed("ours", 12), fixed("limit", 10), fixed("peer", 120), lost, bars=(bar,), limit="limit")

    (verdict,) = measure(row, ONCE).verdicts

    assert (verdict.ours, verdict.met) == (shown, met)


def test_a_workload_runs_its_field_on_each_kind_of_loop() -> None:
    field = Field()

    @field.contestant("a coroutine function")
    async def waits(n: int, size: int) -> int:
        return n * size

    @field.contestant("an ordinary function")
    def calls(n: int, factory: LoopFactory, size: int) -> int:
        factory().close()
        return n * size

    workload = Workload(title="product", by=field, given={"size": 3}, expect=lambda n: 3 * n)
    rows = workload.rows(10)

    assert [row.title for row in rows] == [f"product, {kind}" for kind in loop_kinds()]
    for row in rows:
        assert [each.absent for each in measure(row, ONCE).measured] == ["", ""]
