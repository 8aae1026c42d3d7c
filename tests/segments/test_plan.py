"""The plan of a flow: where it is cut, and what a source takes over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, field, frozen

from reactive_aio import Flow, schedulers
from reactive_aio.operators.filtering import Take
from reactive_aio.operators.transforming import Map
from reactive_aio.segments import Origin, Placed, Plan, PublishOn, Source, Stage, Step, SubscribeOn
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
