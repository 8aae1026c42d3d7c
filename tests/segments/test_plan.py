"""The plan of a flow: where it is cut, and what a source takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve, field, frozen

from reactive_aio import Flow, schedulers
from reactive_aio._fusion import (
    AWAIT,
    ELEMENT,
    OFFSET,
    PART,
    WHOLE,
    Combine,
    Origin,
    Partial,
    Placed,
    Requirement,
    Stage,
    divided,
)
from reactive_aio._plan import LOOP, Capabilities, Nodes, Plan, PublishOn, Source, SubscribeOn
from reactive_aio.extend import flow_of
from reactive_aio.operators.awaiting.map_async import MapAsync
from reactive_aio.operators.combining.concat import Concat
from reactive_aio.operators.filtering import Take
from reactive_aio.operators.folding.fold import AddUp, Count, ToList
from reactive_aio.operators.transforming import Map
from reactive_aio.operators.transforming.index import Index
from tests.subscribers import Recorder, idle

AT = Origin("here.py", 1)


ALL = frozenset(Requirement)


def engine(*runs: Requirement, behind: dict[Requirement, frozenset[Requirement]] | None = None) -> Capabilities:
    return Capabilities("the engine", frozenset(runs), behind=behind or {PART: frozenset()})


@frozen
class Engine(Source[Any]):
    """A source that has stages run where its elements are made."""

    capabilities: Capabilities = field(repr=False)
    taken: tuple[Placed[Stage[Any, Any]], ...] = field(default=(), repr=False)

    def lower(self, stage: Placed[Stage[Any, Any]]) -> Source[Any]:
        left = self.capabilities.after(stage.operator.requirement)
        return evolve(self, taken=(*self.taken, stage), capabilities=left)


def written(source: Source[Any], *operators: Any) -> Nodes:
    steps = tuple(Placed(operator, Origin("here.py", at)) for at, operator in enumerate(operators, 2))
    return Nodes(Placed(source, AT), steps)


def taken(plan: Plan) -> list[Any]:
    source = plan.source.operator
    assert isinstance(source, Engine)
    return [placed.operator for placed in source.taken]


def shape(plan: Plan) -> list[list[Any]]:
    return [[placed.operator for placed in region.stages] for region in plan.regions]


def test_a_flow_is_cut_at_its_boundaries() -> None:
    here, there = schedulers.current(), schedulers.current()
    flow = written(Engine(LOOP), Map(abs), PublishOn(here, 4), Map(str), Take(1), PublishOn(there, 8))
    plan = Plan.of(flow)
    first, second, third = plan.regions

    assert shape(plan) == [[Map(abs)], [Map(str), Take(1)], []]
    assert [region.boundary for region in plan.regions] == [None, PublishOn(here, 4), PublishOn(there, 8)]
    assert (first.scheduler, second.scheduler, third.scheduler) == (None, here, there)
    assert [placed.origin.line for placed in second.stages] == [4, 5]
    assert [region.feed for region in plan.regions] == [flow.source, flow.steps[1], flow.steps[4]]


def test_the_mark_nearest_to_the_source_moves_its_region() -> None:
    nearest, further = schedulers.thread("nearest"), schedulers.thread("further")
    plan = Plan.of(written(Engine(LOOP), SubscribeOn(nearest), Map(abs), SubscribeOn(further)))

    assert shape(plan) == [[Map(abs)]]
    assert plan.regions[0].scheduler is nearest


def test_a_source_takes_over_stages_up_to_the_first_that_its_engine_cannot_run() -> None:
    plan = Plan.of(written(Engine(engine(ELEMENT)), Map(abs), Map(str), Take(1), Map(len)))

    assert [Map(abs), Map(str)] == taken(plan)
    assert [[Take(1), Map(len)]] == shape(plan)
    assert ("lower: map(abs) is run by the engine", "lower: map(str) is run by the engine") == plan.rewrites


def test_a_source_takes_over_nothing_behind_a_boundary() -> None:
    for boundary in (PublishOn(schedulers.current(), 4), SubscribeOn(schedulers.current())):
        plan = Plan.of(written(Engine(engine(*ALL)), Map(abs), boundary, Map(str)))

        assert [Map(abs)] == taken(plan)
        assert shape(plan)[-1] == [Map(str)]


def test_a_source_may_take_over_all() -> None:
    plan = Plan.of(written(Engine(engine(ELEMENT, WHOLE)), Map(abs), Take(1)))

    assert [[]] == shape(plan)
    assert [Map(abs), Take(1)] == taken(plan)


def test_an_event_loop_has_nothing_rewritten() -> None:
    assert () == Plan.of(Flow.range(3).map(str).index().repeat(2).map_async(fetched).then(Count())).rewrites


async def test_a_stage_of_ones_own_makes_its_elements_and_may_run_on_parts() -> None:
    class Emptying(Stage[Any, Any]):
        def apply(self, items: Iterator[Any]) -> Iterator[Any]:
            return (None for _ in items)

    recorder = Recorder(request=1)
    Flow.range(1).then(Emptying()).filter(lambda item: True).subscribe(recorder)
    await idle()

    assert "made in emptying(), chained at" in str(recorder.error)
    assert not Emptying.needs_whole_stream


# -- in parts


def placed(operator: Any, line: int) -> Placed[Any]:
    return Placed(operator, Origin("here.py", line))


def test_a_source_takes_over_one_half_of_a_stage_and_the_other_stands_in_its_place() -> None:
    plan = Plan.of(written(Engine(engine(ELEMENT, PART)), Map(abs), Count(), Map(str), Count()))

    half = Partial("count()", Count(), at_end=True)
    source = plan.source.operator
    assert isinstance(source, Engine)
    assert (placed(Map(abs), 2), placed(half, 3)) == source.taken
    (region,) = plan.regions
    assert region.stages == (placed(Combine("count()", AddUp()), 3), placed(Map(str), 4), placed(Count(), 5))
    assert "divide: count() is run in parts by the engine, and combined here" == plan.rewrites[-1]


def test_a_stage_stays_whole_where_the_engine_or_the_stage_knows_of_no_parts() -> None:
    assert shape(Plan.of(written(Engine(engine(ELEMENT)), Map(abs), Count()))) == [[Count()]]
    assert shape(Plan.of(written(Engine(engine(ELEMENT, PART)), Map(abs), ToList()))) == [[ToList()]]


def test_the_halves_of_a_stage_do_its_work_under_its_name() -> None:
    halves = divided(Count())
    assert halves is not None
    partial, combine = halves

    assert (str(partial), str(combine)) == ("count() in parts", "count() combined")
    assert (partial.share, partial.at_end, combine.share) == (Count(), True, AddUp())
    assert type(partial.transform()) is type(Count().transform())
    assert type(combine.transform()) is type(AddUp().transform())
    assert (partial.needs_whole_stream, combine.needs_whole_stream) == (True, True)
    assert divided(Map(abs)) is None


# -- in turn


IN_TURN = engine(ELEMENT, PART, OFFSET, behind={PART: frozenset(), OFFSET: frozenset({ELEMENT, PART})})


def test_a_source_takes_over_a_stage_in_turn_with_what_follows() -> None:
    for behind, left in (Map(str), []), (Count(), [Combine("count()", AddUp())]):
        plan = Plan.of(written(Engine(IN_TURN), Map(abs), Index(5), behind))

        assert [Map(abs), Index(5)] == taken(plan)[:2]
        assert shape(plan) == [left]


def test_a_source_is_not_made_to_take_turns_for_nothing() -> None:
    there = schedulers.current()
    for behind in (), (ToList(), Map(str)), (PublishOn(there, 1), Map(str)), (Index(0), Map(str)):
        plan = Plan.of(written(Engine(IN_TURN), Map(abs), Index(5), *behind))

        assert [Map(abs)] == taken(plan)
        assert shape(plan)[0][0] == Index(5)


# -- flows that are read one after another


@frozen
class Joining(Engine):
    """Is one with others of its kind."""

    others: tuple[Source[Any], ...] = ()
    method: str = ""

    def join(self, others: tuple[Source[Any], ...], method: str) -> Source[Any] | None:
        return evolve(self, others=others, method=method)


ELEMENTS = engine(ELEMENT)


def test_flows_are_one_source_with_all_their_stages_where_their_engine_says_how() -> None:
    flows = [written(Joining(ELEMENTS), Map(abs)), written(Joining(ELEMENTS), Map(str)), written(Joining(ELEMENTS))]
    plan = Plan.of(written(Concat(tuple(flows)), Map(len)))

    one, *others = (Plan.of(flow).source.operator for flow in flows)
    assert isinstance(one, Joining)
    assert evolve(one, taken=(*one.taken, placed(Map(len), 2)), others=tuple(others), method="concat") == (
        plan.source.operator
    )
    assert "join: concat() is one source of the engine" == plan.rewrites[0]


@pytest.mark.parametrize(
    "other", [written(Engine(LOOP)), written(Joining(ELEMENTS), Take(1)), written(Engine(ELEMENTS))], ids=repr
)
def test_flows_stay_apart_where_one_is_not_run_there_as_a_whole_or_by_another_engine(other: Nodes) -> None:
    first = other if isinstance(other.source.operator, Joining) else written(Engine(ELEMENTS))

    assert isinstance(Plan.of(written(Concat((first, other)))).source.operator, Concat)


def test_each_of_several_flows_takes_over_a_stage_that_all_of_them_can() -> None:
    flows = (written(Engine(engine(ELEMENT, PART)), Map(abs)), written(Engine(engine(ELEMENT, PART, WHOLE))))
    plan = Plan.of(written(Concat(flows), Map(str), Count(), Map(len)))

    source = plan.source.operator
    half = Partial("count()", Count(), at_end=True)
    assert [[Map(abs), Map(str), half], [Map(str), half]] == [taken(Plan.of(each)) for each in source.inner]
    assert [[Combine("count()", AddUp()), Map(len)]] == shape(plan)


def test_none_of_several_flows_takes_over_what_one_of_them_cannot() -> None:
    able = written(Engine(engine(*ALL)))
    for other in written(Engine(LOOP)), written(Engine(engine(*ALL)), PublishOn(schedulers.current(), 1)):
        source = Concat((able, other))

        assert source.capabilities is LOOP
        assert [[Map(str)]] == shape(Plan.of(written(source, Map(str))))


def test_a_stage_that_awaits_is_run_where_the_engine_has_an_event_loop() -> None:
    async def fetch(n: int) -> int:
        return n

    for runs, expected in (engine(ELEMENT, AWAIT), "map_async"), (engine(ELEMENT), None):
        flow = flow_of(Engine(runs)).map(abs).map_async(fetch).map(str)
        source = Plan.of(flow).source.operator

        assert isinstance(flow.__nodes__.source.operator, MapAsync)  # built the same
        assert (expected is None) == isinstance(source, MapAsync)
        if isinstance(source, Engine):
            assert ["map", "map_async", "map"] == [placed.operator.name for placed in source.taken]


# -- what is refused while the flow is built


def refusing(refused: list[str], *runs: Requirement) -> Engine:
    def check(stage: Placed[Stage[Any, Any]], sent: Stage[Any, Any]) -> None:
        refused.append(str(sent))

    return Engine(Capabilities("the engine", frozenset(runs), check, {PART: frozenset()}))


async def fetched(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("build", "checked"),
    [
        (lambda flow: flow.map(abs).map(str), ["map(abs)", "map(str)"]),
        (lambda flow: flow.map(abs).scan(max, 0).map(str), ["map(abs)"]),
        (lambda flow: flow.publish_on(schedulers.current()).map(str), []),
        (lambda flow: flow.subscribe_on(schedulers.current()).map(str), []),
        (lambda flow: flow.then(Count()).map(str), ["count() in parts"]),
        (lambda flow: flow.map_async(fetched).map(str), ["map_async(fetched, 16)", "map(str)"]),
        (lambda flow: flow.map_async(fetched, order="completion").map(str), []),
        (lambda flow: flow.repeat().map(str), ["map(str)"]),
        (lambda flow: flow.concat(Flow.range(3)).map(str), []),
        (lambda flow: flow.concat(flow).map(str), ["map(str)"]),
    ],
)  # fmt: skip
def test_a_stage_is_checked_once_where_it_is_chained_if_the_engine_would_run_it(
    build: Callable[[Flow[Any]], object], checked: list[str]
) -> None:
    seen: list[str] = []
    build(flow_of(refusing(seen, ELEMENT, PART, AWAIT)))

    assert checked == seen


def test_what_can_be_run_is_known_without_a_look_at_the_steps_before() -> None:
    flow = flow_of(Engine(engine(ELEMENT)))
    for _ in range(50):
        flow = flow.map(abs)

    assert flow.__nodes__.capabilities is flow.__nodes__.source.operator.capabilities
    assert flow.take(1).__nodes__.capabilities is LOOP


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
