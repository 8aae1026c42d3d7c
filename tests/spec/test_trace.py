"""A trace knows its calls, and shows them."""

from __future__ import annotations

import re

import pytest

from reactive_aio.spec import UNBOUNDED
from reactive_aio.spec.trace import Facts, Identity, Kind, Signal, Trace
from tests.spec.telling import cancel, on_complete, on_error, on_next, on_subscribe, request, rest, subscribe, trace

WHERE = "stream 1, t=0.000, thread 1, task None, depth 0"


def test_a_call_is_shown_with_what_it_was_made_with_and_in() -> None:
    told = trace(on_subscribe(request(2)), on_next("a"), on_complete())

    assert str(told.signals[0]) == f"#0 on_subscribe()  [{WHERE}]"
    assert str(told.signals[1]) == f"#1 request(2)  [{WHERE}, inside #0]"
    assert str(told.signals[4]) == f"#4 on_next('a')  [{WHERE}]"
    assert str(told.signals[6]) == f"#6 on_complete()  [{WHERE}]"


def test_the_end_of_a_call_is_shown_with_the_call() -> None:
    told = trace(on_next(1), on_next(2, raises=OSError("no")))

    assert str(told.signals[1]) == f"#1 #0 returned  [{WHERE}]"
    assert str(told.signals[3]) == f"#3 #2 raised(OSError('no'))  [{WHERE}]"


def test_a_pause_is_shown_as_such() -> None:
    assert str(trace(rest()).signals[0]) == "#0 everything is at rest"


@pytest.mark.parametrize(("length", "shown"), [(58, "'" + "x" * 58 + "'"), (59, "'" + "x" * 56 + "...")])
def test_a_long_value_is_cut(length: int, shown: str) -> None:
    assert str(trace(on_next("x" * length)).signals[0]).startswith(f"#0 on_next({shown})  [")


def test_an_absent_subscriber_is_shown_as_none() -> None:
    assert str(trace(subscribe(Identity(0, "NoneType"))).signals[0]).startswith("#0 subscribe(None)  [")
    assert repr(Identity(255, "Probe")) == "<Probe at 0xff>"


@pytest.mark.parametrize(
    ("cited", "shown"),
    [
        ([], ["(10 more before)", *range(10, 30)]),
        ([29, 12], ["(10 more before)", *range(10, 30)]),
        ([0], [*range(20), "(10 more after)"]),
        ([9], [*range(20), "(10 more after)"]),
        ([12], ["(2 more before)", *range(2, 22), "(8 more after)"]),
        ([1, 27], [*range(10), "(10 more between)", *range(20, 30)]),
        ([99], ["(10 more before)", *range(10, 30)]),
    ],
    ids=repr,
)
def test_an_excerpt_shows_the_cited_entries_and_counts_the_others(cited: list[int], shown: list[str | int]) -> None:
    told = trace(*(on_next(n) for n in range(15)))

    lines = [line.strip() for line in told.excerpt(cited).splitlines()]
    assert [str(each) for each in shown] == [re.sub(r"^#(\d+) .*", r"\1", line) for line in lines]


def test_a_short_excerpt_is_the_whole_trace() -> None:
    told = trace(*(on_next(n) for n in range(5)))

    assert "\n".join(f"    {signal}" for signal in told.signals) == told.excerpt([3])


def test_an_excerpt_goes_by_the_places_of_a_recording_that_has_lost_its_beginning() -> None:
    whole = trace(*(on_next(n) for n in range(15)))
    told = Trace(whole.signals[20:])

    assert ["(25 more before)", "#25", "#26", "(3 more after)"] == [
        line.strip() if "more" in line else line.split()[0] for line in told.excerpt([26], 2).splitlines()
    ]


def test_a_call_knows_how_it_ended_and_how_long_it_took() -> None:
    error = OSError("no")
    told = trace(on_next(1, seconds=0.5), on_next(2, raises=error, seconds=0.25), on_next(3, lasts=True))
    first, second, third = told.calls.values()

    assert (first.raised, second.raised, third.raised) == (None, error, None)
    assert (first.duration, second.duration, third.duration) == (0.5, 0.25, 0.0)
    assert (first.kind, first.at, first.value) == (Kind.ON_NEXT, 0, 1)


def test_a_call_is_open_between_its_beginning_and_its_end() -> None:
    told = trace(on_next(1, request(1)), on_next(2, lasts=True))
    first, inner, last = told.calls.values()

    assert first.open_at(inner.at)
    assert not inner.open_at(first.at)
    assert not first.open_at(last.at)
    assert last.open_at(99)


def test_the_calls_around_a_call_come_from_the_nearest_outwards() -> None:
    told = trace(subscribe("s", on_subscribe(request(1))))
    first, second, third = told.calls.values()

    assert list(told.around(third)) == [second, first]
    assert list(told.around(first)) == []


def test_calls_that_a_trace_no_longer_has_are_not_around() -> None:
    whole = trace(subscribe("s", on_subscribe(request(1))))
    cut = Trace(whole.signals[1:])

    assert [call.at for call in cut.around(cut.calls[2])] == [1]


def test_rest_counts_between_two_places_only() -> None:
    told = trace(on_next(1), rest(), on_next(2))

    assert told.rested(0, 3)
    assert not told.rested(2, 3)
    assert not told.rested(0, 2)
    assert told.calls.keys() == {0, 3}


def test_streams_come_in_the_order_in_which_they_began() -> None:
    told = trace(on_next(1, stream=2), on_next(2), on_next(3, stream=2))

    assert [(each.number, each.items) for each in told.streams] == [(2, [1, 3]), (1, [2])]
    assert told.stream(1) is told.streams[1]
    assert told.stream(7).calls == ()


def test_a_stream_tells_its_first_end_and_its_signals() -> None:
    (stream,) = trace(on_subscribe(request(1)), on_next("a"), on_error("first"), on_complete()).streams
    kinds = [call.kind for call in stream.signals]

    assert kinds == [Kind.ON_SUBSCRIBE, Kind.ON_NEXT, Kind.ON_ERROR, Kind.ON_COMPLETE]
    assert stream.terminal is not None
    assert stream.terminal.value == "first"


def test_only_the_first_subscription_can_cancel_a_stream() -> None:
    (stream,) = trace(
        on_subscribe(link=3), on_subscribe(link=4), cancel(link=4), cancel(link=3), cancel(link=3)
    ).streams

    assert stream.link == 3
    assert stream.cancelled is not None
    assert stream.cancelled.at == 6
    assert trace(on_next(1)).streams[0].link == 0
    assert trace(on_next(1)).streams[0].cancelled is None


def test_demand_is_summed_up_to_a_place() -> None:
    (stream,) = trace(request(2), request(0), request(True), request(3), requested_before=10).streams

    assert [stream.requested(until) for until in (0, 1, 6, 7, None)] == [10, 12, 12, 15, 15]


def test_demand_stays_unbounded() -> None:
    (stream,) = trace(request(UNBOUNDED), request(1)).streams

    assert stream.requested() == UNBOUNDED


def test_wanted_is_what_was_asked_for_and_is_there() -> None:
    asked = [request(2), request(2), on_next(1)]

    assert trace(*asked).streams[0].wanted == 4
    assert trace(*asked, elements=3).streams[0].wanted == 3
    assert trace(*asked, elements=9).streams[0].wanted == 4
    assert trace(*asked, delivered_before=2).streams[0].delivered == 3


def test_what_began_after_a_place_is_told_without_what_began_there() -> None:
    (stream,) = trace(on_next(1), on_next(2), on_next(3)).streams

    assert [call.value for call in stream.after(2)] == [3]
    assert [call.value for call in stream.of(Kind.ON_NEXT)] == [1, 2, 3]
    assert stream.of(Kind.REQUEST, Kind.CANCEL) == []


def test_an_entry_that_says_nothing_of_its_surroundings_has_none() -> None:
    bare = Signal(4, Kind.ON_NEXT)

    assert (bare.stream, bare.link, bare.call, bare.thread, bare.depth) == (0, 0, 0, 0, 0)
    assert (bare.time, bare.clock, bare.within, bare.loop, bare.task) == (0.0, 0.0, None, None, None)


def test_nothing_is_held_against_a_stream_of_which_nothing_is_known() -> None:
    facts = Facts()

    assert [facts.at_rest, facts.fails, facts.multicast, facts.done, facts.provoked] == [False] * 5
    assert (facts.asked, facts.requested_before, facts.delivered_before) == (0, 0, 0)
    assert (facts.depth, facts.budget) == (1, 0.05)
    assert Trace(()).facts == facts


def test_a_value_whose_repr_raises_is_shown_by_its_class() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise KeyError

    assert str(trace(on_next(Mute())).signals[0]).startswith("#0 on_next(<Mute>)  [")
