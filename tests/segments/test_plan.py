"""The plan of a flow: where it is cut, and what a source takes over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, field, frozen

from reactive_aio import Flow, schedulers
from reactive_aio.operators.filtering import Take
from reactive_aio.operators.folding.fold import AddUp, Count, ToList
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.index import Index
from reactive_aio.segments import (
    Combine,
    Origin,
    Partial,
    Placed,
    Plan,
    PublishOn,
    Source,
    Stage,
    Step,
    SubscribeOn,
    absorbed,
    awaits,
    check_absorbed,
    divided,
    joined,
)
from tests.subscribers import Recorder, idle

AT = Origin("here.py", 1)


@frozen
class Absorbing(Source[Any]):
    """A source that runs some stages itself."""

    kinds: tuple[type[Any], ...]
    taken: tuple[Placed[Stage[Any, Any]], ...] = field(default=(), repr=False)

    def absorb(self, stage: Placed[Stage[Any, Any]]) -> Source[Any] | None:
        return evolve(self, taken=(*self.taken, stage)) if isinstance(stage.operator, self.kinds) else None


@frozen
class Written:
    """A flow of a source and steps, as they are."""

    source: Placed[Source[Any]]
    steps: tuple[Step, ...]


def written(source: Source[Any], *operators: Any) -> Written:
    steps = tuple(Placed(operator, Origin("here.py", at)) for at, operator in enumerate(operators, 2))
    return Written(Placed(source, AT), steps)


def shape(plan: Plan) -> list[list[Any]]:
    return [[placed.operator for placed in region.stages] for region in plan.regions]


def test_a_flow_is_cut_at_its_boundaries() -> None:
    here, there = schedulers.current(), schedulers.current()
    flow = written(Absorbing(()), Map(abs), PublishOn(here, 4), Map(str), Take(1), PublishOn(there, 8))
    plan = Plan.of(flow)
    first, second, third = plan.regions

    assert shape(plan) == [[Map(abs)], [Map(str), Take(1)], []]
    assert [region.boundary for region in plan.regions] == [None, PublishOn(here, 4), PublishOn(there, 8)]
    assert (first.scheduler, second.scheduler, third.scheduler) == (None, here, there)
    assert [placed.origin.line for placed in second.stages] == [4, 5]
    assert [region.feed for region in plan.regions] == [flow.source, flow.steps[1], flow.steps[4]]


def test_the_mark_nearest_to_the_source_moves_its_region() -> None:
    nearest, further = schedulers.thread("nearest"), schedulers.thread("further")
    plan = Plan.of(written(Absorbing(()), SubscribeOn(nearest), Map(abs), SubscribeOn(further)))

    assert shape(plan) == [[Map(abs)]]
    assert plan.regions[0].scheduler is nearest


def test_a_source_takes_over_stages_up_to_the_first_that_it_cannot() -> None:
    plan = Plan.of(written(Absorbing((Map,)), Map(abs), Map(str), Take(1), Map(len)))

    assert plan.source == Placed(
        Absorbing((Map,), (Placed(Map(abs), Origin("here.py", 2)), Placed(Map(str), Origin("here.py", 3)))), AT
    )
    assert shape(plan) == [[Take(1), Map(len)]]


def test_a_source_takes_over_nothing_behind_a_boundary() -> None:
    for boundary in (PublishOn(schedulers.current(), 4), SubscribeOn(schedulers.current())):
        plan = Plan.of(written(Absorbing((Map, PublishOn, SubscribeOn)), Map(abs), boundary, Map(str)))

        assert [placed.operator for placed in plan.source.operator.taken] == [Map(abs)]
        assert shape(plan)[-1] == [Map(str)]


def test_a_source_may_take_over_all() -> None:
    plan = Plan.of(written(Absorbing((Map, Take)), Map(abs), Take(1)))

    assert shape(plan) == [[]]
    assert len(plan.source.operator.taken) == 2


async def test_a_stage_of_ones_own_makes_its_elements_and_may_run_on_parts() -> None:
    class Emptying(Stage[Any, Any]):
        def apply(self, items: Iterator[Any]) -> Iterator[Any]:
            return (None for _ in items)

    recorder = Recorder(request=1)
    Flow.range(1).then(Emptying()).filter(lambda item: True).subscribe(recorder)
    await idle()

    assert "made in emptying(), chained at" in str(recorder.error)
    assert not Emptying.positional


# -- in parts


IN_PARTS = (Map, Partial)


def placed(operator: Any, line: int) -> Placed[Any]:
    return Placed(operator, Origin("here.py", line))


def test_a_source_takes_over_one_half_of_a_stage_and_the_other_stands_in_its_place() -> None:
    plan = Plan.of(written(Absorbing(IN_PARTS), Map(abs), Count(), Map(str), Count()))

    half = Partial("count()", Count(), at_end=True)
    assert plan.source == Placed(Absorbing(IN_PARTS, (placed(Map(abs), 2), placed(half, 3))), AT)
    (region,) = plan.regions
    assert region.stages == (placed(Combine("count()", AddUp()), 3), placed(Map(str), 4), placed(Count(), 5))


def test_a_stage_stays_whole_where_the_source_or_the_stage_knows_of_no_parts() -> None:
    assert shape(Plan.of(written(Absorbing((Map,)), Map(abs), Count()))) == [[Count()]]
    assert shape(Plan.of(written(Absorbing(IN_PARTS), Map(abs), ToList()))) == [[ToList()]]


def test_the_halves_of_a_stage_do_its_work_under_its_name() -> None:
    halves = divided(Count())
    assert halves is not None
    partial, combine = halves

    assert (str(partial), str(combine)) == ("count() in parts", "count() combined")
    assert (partial.share, partial.at_end, combine.share) == (Count(), True, AddUp())
    assert type(partial.transform()) is type(Count().transform())
    assert type(combine.transform()) is type(AddUp().transform())
    assert (partial.positional, combine.positional) == (True, True)
    assert divided(Map(abs)) is None


# -- in turn


IN_TURN = (*IN_PARTS, Index)


def test_a_source_takes_over_a_stage_in_turn_with_what_follows() -> None:
    for behind, left in (Map(str), []), (Count(), [Combine("count()", AddUp())]):
        plan = Plan.of(written(Absorbing(IN_TURN), Map(abs), Index(5), behind))

        first, numbered, _ = plan.source.operator.taken
        assert (first, numbered) == (placed(Map(abs), 2), placed(Index(5), 3))
        assert shape(plan) == [left]


def test_a_source_is_not_made_to_take_turns_for_nothing() -> None:
    there = schedulers.current()
    for behind in (), (ToList(), Map(str)), (PublishOn(there, 1), Map(str)):
        plan = Plan.of(written(Absorbing(IN_TURN), Map(abs), Index(5), *behind))

        assert plan.source.operator.taken == (placed(Map(abs), 2),)
        assert shape(plan)[0][0] == Index(5)


def test_a_source_has_what_is_in_turn_with_one_more() -> None:
    flow = written(Absorbing(IN_TURN), Index(0))
    more = absorbed(flow, placed(Map(str), 9))

    assert more is not None
    assert more.source == Placed(Absorbing(IN_TURN, (placed(Index(0), 2), placed(Map(str), 9))), AT)
    assert absorbed(flow, placed(Index(0), 9)) is None


# -- one more


def test_a_source_may_have_all_and_one_more() -> None:
    flow = written(Absorbing((Map,)), Map(abs))
    more = absorbed(flow, placed(Map(str), 9))

    assert more is not None
    assert more.source == Placed(Absorbing((Map,), (placed(Map(abs), 2), placed(Map(str), 9))), AT)
    assert more.steps == ()
    assert absorbed(flow, placed(Take(1), 9)) is None
    assert absorbed(written(Absorbing((Map,)), Take(1)), placed(Map(str), 9)) is None
    assert absorbed(written(Absorbing((Map,)), PublishOn(schedulers.current(), 1)), placed(Map(str), 9)) is None


@frozen
class Checking(Absorbing):
    """Notes what it is asked to check."""

    checked: list[Any] = field(factory=list)

    def check(self, before: tuple[Step, ...], stage: Placed[Stage[Any, Any]]) -> None:
        self.checked.append((before, stage))


def test_a_stage_behind_others_is_checked_by_all_sources_if_all_would_take_it() -> None:
    before = (placed(Map(len), 8),)
    for kinds, stage in ((Map,), Map(str)), ((Partial,), Count()):
        one, other = Checking(kinds), Checking((*kinds, Map))
        check_absorbed([written(one), written(other, Map(abs))], before, placed(stage, 9))

        assert one.checked == [(before, placed(stage, 9))]
        assert other.checked == [((placed(Map(abs), 2), *before), placed(stage, 9))]


def test_nothing_is_checked_behind_what_depends_on_the_whole_of_several_flows() -> None:
    source = Checking((Map, Take))
    check_absorbed([written(source)], (placed(Take(1), 8),), placed(Map(str), 9))

    assert not source.checked


def test_a_stage_is_checked_by_nobody_if_one_source_would_not_take_it() -> None:
    one, other = Checking((Map,)), Checking(())
    check_absorbed([written(one), written(other)], (), placed(Map(str), 9))

    assert (one.checked, other.checked) == ([], [])


@frozen
class Joining(Absorbing):
    """Takes over what it can, and is one with others of its kind."""

    others: tuple[Source[Any], ...] = ()
    method: str = ""

    lowers = True

    def join(self, others: tuple[Source[Any], ...], method: str) -> Source[Any] | None:
        return evolve(self, others=others, method=method)


def test_flows_are_one_source_with_all_their_stages_where_the_first_says_how() -> None:
    flows = [written(Joining((Map,)), Map(abs)), written(Joining((Map,)), Map(str)), written(Joining(()))]

    one, *others = (Plan.of(flow).source.operator for flow in flows)
    assert joined(flows, "concat") == evolve(one, others=tuple(others), method="concat")
    assert joined([*flows, written(Absorbing(()))], "concat") is None
    assert joined([*flows, written(Joining(()), Map(abs))], "concat") is None


def test_what_runs_stages_where_elements_are_made_awaits_there_too() -> None:
    stage = Map(str)

    assert awaits(written(Joining((Map,)), Map(abs)), stage)
    assert not awaits(written(Joining(())), stage)
    assert not awaits(written(Absorbing((Map,))), stage)


# -- where a combinator runs


@frozen
class Reading(Source[Any]):
    """A combinator of flows."""

    flows: tuple[Flow[Any], ...]

    @property
    def inner(self) -> tuple[Flow[Any], ...]:
        return self.flows


def test_a_combinator_runs_where_the_first_of_its_flows_ends() -> None:
    there, near = schedulers.thread("there"), schedulers.thread("near")
    first = Flow.range(3).publish_on(there)
    plan = Plan.of(written(Reading((first, Flow.range(3))), Map(abs), SubscribeOn(near)))

    assert Reading((first,)).followed is first
    assert (plan.regions[0].scheduler, plan.follows, plan.moved) == (there, True, near)


def test_what_reads_nothing_that_ends_elsewhere_runs_where_it_was_moved() -> None:
    near = schedulers.thread("near")
    for source in (Reading(()), Reading((Flow.range(3),))):
        plan = Plan.of(written(source, SubscribeOn(near)))

        assert (plan.regions[0].scheduler, plan.follows, plan.moved) == (near, False, near)
    assert Reading(()).followed is None
