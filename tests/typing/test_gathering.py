"""Types survive what reads several flows at a time: read by mypy and pyright in strict mode."""

from __future__ import annotations

from typing import assert_type

from reactive_aio import Flow, Hub, Offer, Shared


def test_flows_side_by_side() -> None:
    flow = Flow.range(3)
    assert_type(flow.merge(Flow.of("a"), prefetch=8), Flow[int | str])
    assert_type(flow.merge(flow, delay_errors=True), Flow[int])
    assert_type(flow.concat_eager(Flow.of("a"), prefetch=8), Flow[int | str])


def test_a_flow_for_each_element() -> None:
    flow = Flow.range(3)
    assert_type(flow.flat_map(lambda n: Flow.of(str(n)), max_concurrency=2, prefetch=1), Flow[str])
    assert_type(flow.flat_map(Flow.of), Flow[int])
    assert_type(flow.concat_map(lambda n: Flow.of(str(n))), Flow[str])
    assert_type(flow.concat_map_eager(lambda n: Flow.of(str(n)), max_concurrency=2, prefetch=1), Flow[str])
    assert_type(flow.switch_map(lambda n: Flow.of(str(n))), Flow[str])
    assert_type(flow.exhaust_map(lambda n: Flow.of(str(n))), Flow[str])


def test_one_run_for_several_subscribers() -> None:
    flow = Flow.range(3)
    assert_type(flow.share(lag=8, replay=2, restart="never"), Shared[int])
    assert_type(flow.share().map(str), Flow[str])
    assert_type(flow.multicast(lambda one: one.zip(one.map(str))), Flow[tuple[int, str]])


async def test_a_hub_has_one_type_of_elements() -> None:
    hub: Hub[int] = Hub(idle="drop")
    assert_type(hub.flow, Flow[int])
    assert_type(hub.offer(1), Offer)
    await hub.feed(Flow.empty())
