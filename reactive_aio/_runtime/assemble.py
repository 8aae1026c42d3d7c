"""Assembly: from the plan of a flow to its drivers, linked over their boundaries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextvars import Context
from functools import partial
from operator import length_hint
from typing import Any, TypeVar

from attrs import define, field

from .._core.budgets import Budget
from .._core.guard import FAILURES, Failed
from .._core.tasks import begin_task
from .._fusion import Placed, RegionRun
from .._plan import LOOP, Awaited, FlowLike, Gauge, Nodes, Plan, Pulled, Pushed, Receiver, Region, TasksSnapshot
from ..operators.sourcing.error import Error
from ..schedulers.base import Released, Scheduler
from ..schedulers.current import Home
from ..spec import Subscription
from .awaited import AwaitedInput
from .awaited_region import AwaitedDriver
from .crossing import Crossing, Gathering
from .driver import RegionDriver
from .given import Given, PassedOn
from .host import FlowHost, begun
from .inputs import LONGEST_CHUNK, Input, PulledInput, PushedInput
from .iterator_subscription import IteratorSubscription
from .lifetime import Lifetime
from .on_the_spot import Spot, is_one_for_one, is_read_here
from .owner import Reader
from .passage import Passage
from .places import HERE, PREFETCH, Held, at_home, attach, here, placed_at
from .spare import SpareOwner
from .staged import StagedGiven, StagedPassage
from .tree import View, after_end
from .turns import Company

U = TypeVar("U")


@define(eq=False)
class RegionHost:
    """The ground of a pushed source: its region's driver, and the lifetime of what it starts there (a Host)."""

    driver: RegionDriver | Passage
    lifetime: Lifetime
    _belonging: Scheduler
    """The place of the combinator's flows, if it may differ from the place where the combinator runs."""
    _given: dict[int, FlowLike]
    """Those flows, by identity. They are held: when one is freed, a flow that a function makes may get its identity."""
    _flow: FlowLike | None = field(init=False, default=None)
    _plan: Plan = field(init=False)
    """The plan of the last inner flow: it is mostly the same one that is subscribed to again."""
    _home: Scheduler = field(init=False)
    """The place of that flow."""
    _spotted: FlowLike | None = field(init=False, default=None)
    _spot: Spot = field(init=False)
    """The last flow that was run on the spot: mostly the same one is run again."""
    _spare: SpareOwner | None = field(init=False, default=None)
    """The latest owner of an iterator."""
    _passed_on: PassedOn = field(init=False, factory=PassedOn)
    """The latest given elements, to which nothing has subscribed."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the region."""
        return self.driver.loop

    @property
    def context(self) -> Context:
        """The context of the subscriber."""
        return self.driver.context

    @property
    def where(self) -> str:
        """The source and the line it was chained on."""
        return self.driver.region.source

    def post(self, handle: Callable[[Any], None], value: Any) -> None:
        """Call ``handle(value)`` on the region's loop, from any thread."""
        self.driver.post(handle, value)

    def hold(self) -> Released:
        """Take a hold on the lifetime of the region. It is also released if the loop ends first."""
        hold = _Hold(self.driver, self.lifetime.hold())
        self.driver.abandoned[hold] = None
        return hold

    def start(self, coroutine: Coroutine[Any, Any, U], context: Context | None = None) -> asyncio.Task[U]:
        """Run a coroutine in a task of the subscription."""
        release = self.hold()
        try:
            task = begin_task(coroutine, context or self.context.copy(), self.loop)
        except FAILURES:  # of a task factory: nothing has been started
            release()
            raise
        held = begun(self.loop)
        held.add(task)

        def over(task: asyncio.Task[U]) -> None:
            held.discard(task)
            release()

        task.add_done_callback(over)
        return task

    def cleanup_failed(self, error: BaseException) -> None:
        """Pass on the error of a cleanup after the end of the region."""
        # A copy, as this may be called on any thread, and inside the context itself.
        self.driver.context.copy().run(self.driver.host.cleanup_failed, error)

    def dropped(self, error: BaseException, *, again: bool = False) -> None:
        """Report to the hook a failure that is not raised, unless it has come to the region by another way."""
        if not self.driver.host.knows(error):
            self.driver.host.dropped(error, again=again)

    def subscribe(
        self,
        flow: FlowLike,
        receiver: Receiver[Any],
        *,
        at_once: bool,
        ahead: bool = False,
        ended: Callable[[], None] | None = None,
        context: Context | None = None,
    ) -> None:
        """Assemble an inner flow that signals on this loop."""
        at_once = at_once and not self.driver.place.hops
        if ended is None and context is None:
            steps: Any = flow.__nodes__.steps
            if flow.__given__ is None and (source := self._awaited_by(flow)) is not None:
                read = IteratorSubscription(source, steps, self.driver, receiver, self.lifetime, self._borrow)
                view = self.driver.view
                assert view is not None
                view.inner = read
                read.begin(at_once=at_once)
                return
            if self._is_at_hand(flow):
                given = _view(self.driver).inner = self._begun(flow.__nodes__, receiver)
                given.begin(receiver, at_once=at_once)
                return
            if at_once and self._passes_on(flow):
                self._pass_on(flow, receiver)
                return
        if flow is not self._flow:
            self._flow = flow
            # A flow that a function has made belongs where the function has run.
            self._home = self._belonging if id(flow) in self._given else Home(self.driver.loop)
            self._plan = Plan.of(at_home(flow, self._home, None if ahead else PREFETCH))
        lifetime = self.lifetime if ended is None else self.lifetime.part()
        context = context or self.context
        if self.driver.place.leaves and _may_block(self._plan, self._plan.regions[-1]):
            Gathering.begin(self.driver)
        driver = assemble(
            self._plan,
            receiver,
            FlowHost(lifetime, self.driver.host),
            context,
            home=self._home,
            leaves=self.driver.place.leaves,
            called=at_once,
            company=self.driver.company,
        )
        if ended is not None:
            lifetime.then(ended)
            lifetime.then(self.lifetime.hold())
        driver.read_by(self.driver)
        _view(self.driver).inner = driver
        if at_once:
            # No meeting: a subscriber may be in the context of one of those who are to meet.
            driver.context.run(driver.take_turn)

    def _begun(self, nodes: Nodes, receiver: Receiver[Any]) -> Given:
        """Return the subscription to given elements, behind stateless stages if there are some."""
        source: Any = nodes.source
        items: Iterator[Any] = source.operator.iterate()
        if not nodes.steps:
            return Given((self.driver, receiver), items)
        stages: Any = nodes.steps
        return StagedGiven((self.driver, receiver), items, RegionRun(stages, source, counted=True), self.context.copy())

    def _passes_on(self, flow: FlowLike) -> bool:
        """Return whether a flow is a combinator, or a part of a flow, that can be read here without a region."""
        nodes, driver = flow.__nodes__, self.driver
        if not nodes.source.operator.passes_on or nodes.capabilities is not LOOP or not is_read_here(nodes):
            return False
        return self._is_here(flow) and not driver.place.hops and Passage.is_flat_in(driver)

    def _pass_on(self, flow: FlowLike, receiver: Receiver[Any]) -> None:
        """Subscribe to a combinator, which delivers to the receiver without a region between."""
        plan = Plan.of(flow)
        source: Any = plan.source.operator
        kind = StagedPassage if plan.regions[0].stages else Passage
        passage = _view(self.driver).inner = kind(self.driver, plan.regions[0], receiver, self.lifetime)
        passage.place.is_transparent = source.is_transparent
        inlet = RegionInlet(passage, self.lifetime, Home(self.driver.loop), {})
        passage.begin(partial(source.open, inlet))

    def _borrow(self, source: AwaitedInput, reader: Reader) -> SpareOwner:
        """Return an owner for an iterator: the one of those before it, if none of them has suspended."""
        spare, context = self._spare, self.driver.context
        if spare is None or not spare.lend(source, reader, context):
            hold = self.hold()
            try:
                spare = self._spare = SpareOwner(source, reader, self.driver.budget, context, hold)
            except FAILURES:  # as in `start`
                hold()
                raise
        return spare

    def given(self, flow: FlowLike, most: int) -> list[Any] | Failed | None:
        """Return the elements of a flow of given elements, unless they are too many or have to wait for a turn."""
        if self.driver.place.hops:
            return None
        made: list[Any] | Failed | None = None
        if flow is self._spotted:
            made = self._spot.made(most, self.driver.context)
        else:
            given, most = flow.__given__, min(most, LONGEST_CHUNK)
            if given is not None and len(given) <= most and (id(flow) not in self._given or self._belonging.is_here()):
                made = list(given)
            elif self._is_at_hand(flow):
                made = self._made_of(flow, most)
        view = self.driver.view
        if view is not None and made is not None:
            view.inner = self._passed_on
            self._passed_on.delivered = 0 if isinstance(made, Failed) else len(made)
        return made

    def is_given(self, flow: FlowLike) -> bool:
        """Return whether `given` may return the elements of a flow when there is demand."""
        return not self.driver.place.hops and self._is_at_hand(flow)

    def _made_of(self, flow: FlowLike, most: int) -> list[Any] | Failed | None:
        nodes = flow.__nodes__
        source: Any = nodes.source.operator
        items: Iterator[Any] = source.iterate()
        if length_hint(items) > (1 if nodes.steps else most):
            return None
        if not nodes.steps:
            return list(items)
        self._spotted, self._spot = flow, Spot.of(nodes)
        return self._spot.made(most, self.driver.context)

    def _is_here(self, flow: FlowLike) -> bool:
        """Return whether a flow that was given to the combinator, rather than made by its function, belongs to this loop."""
        return id(flow) not in self._given or self._belonging.is_here()

    def _awaited_by(self, flow: FlowLike) -> Placed[Awaited[Any]] | None:
        """Return the source of a flow of an async iterator that is read here, with at most stateless stages. None for all others."""
        nodes = flow.__nodes__
        source: Placed[Any] = nodes.source
        if source.operator.kind != "awaited" or self.driver.place.hops:
            return None
        if id(flow) in self._given and not self._belonging.is_here():  # as `_is_here`, without a call
            return None
        return source if not nodes.steps or _is_stateless(nodes) else None

    def _is_at_hand(self, flow: FlowLike) -> bool:
        """Return whether a flow is one of given elements here, with at most stateless stages."""
        nodes = flow.__nodes__
        return nodes.source.operator.at_hand and self._is_here(flow) and (not nodes.steps or _is_stateless(nodes))


@define(eq=False)
class RegionInlet(RegionHost):
    """The host of a pushed source, with the outlet to its region and what snapshots see of it (an Inlet)."""

    on_chunk: Callable[[list[Any]], None] = field(init=False)
    """Delivers elements: the driver's own, without a call between."""

    def __attrs_post_init__(self) -> None:
        self.on_chunk = self.driver.on_chunk

    def on_error(self, error: BaseException) -> None:
        """Deliver the failure."""
        self.driver.on_error(error)

    def on_complete(self) -> None:
        """Deliver the end."""
        self.driver.on_complete()

    def discard_by(self, discard: Callable[[Iterable[Any]], None]) -> None:
        """Let the source discard elements that the region gets and does not begin."""
        _region(self.driver).upstream.discard = discard

    def after_end(self, call: Callable[[], None]) -> None:
        """Call something after the end of the region."""
        after_end(self.driver, call)

    def show(self, gauge: Gauge) -> None:
        """Show in snapshots the elements that the source itself keeps and drops."""
        _view(self.driver).gauge = gauge

    def show_tasks(self, tasks: Callable[[], TasksSnapshot]) -> None:
        """Show in snapshots the progress of the tasks that make the elements."""
        _view(self.driver).tasks = tasks


def _is_stateless(nodes: Nodes) -> bool:
    """Return whether a flow has nothing but stateless stages, which run here."""
    return nodes.capabilities is LOOP and is_one_for_one(tuple([type(step.operator) for step in nodes.steps]))


def _region(driver: RegionDriver | Passage) -> RegionDriver:
    """Return the region that a source feeds which does more than to pass on."""
    assert isinstance(driver, RegionDriver)
    return driver


def _view(driver: RegionDriver | Passage) -> View:
    """Return what snapshots see of a region that a pushed source feeds."""
    assert driver.view is not None
    return driver.view


@define(eq=False)
class _Hold:
    """A hold on a lifetime. It is released at its first call, or when the loop of its region ends."""

    _driver: RegionDriver | Passage
    _release: Released | None

    def __call__(self, join: Callable[[], None] | None = None) -> None:
        self._driver.abandoned.pop(self, None)
        release, self._release = self._release, None
        if release is not None:
            release(join)


def assemble(
    plan: Plan,
    receiver: Receiver[Any],
    host: FlowHost,
    context: Context,
    *,
    home: Scheduler | None = None,
    each: bool = False,
    leaves: bool = False,
    called: bool = False,
    company: Company | None = None,
) -> RegionDriver:
    """Make the drivers of a flow, from its end to its source, link them, and start them on their loops.

    If the flow can't be placed, since a region has no loop, the receiver is given the error as from any failing
    source. With ``each`` an element is delivered before the next is made. So it is with ``leaves``, which says that the
    elements leave for another event loop behind the receiver, where a source may block. The result is the driver of the
    last region, which is the receiver's Subscription. With ``called`` its first turn is the caller's to take. The
    regions on the loop of ``company`` join it. A region that is placed nowhere runs at ``home``, on the running loop if
    there is none.
    """
    home = home or here()
    lone = placed_at(plan.regions[0].scheduler, home) if len(plan.regions) == 1 else None
    places: list[Held] = []
    try:
        runs = [_run(plan, region) for region in plan.regions]
        if not isinstance(lone, Home):
            places = attach(plan, host.lifetime, home)
    except FAILURES as error:
        plan = Plan(Placed(Error(error), plan.source.origin), (Region(plan.source, (), None, None),))
        runs, lone = [_run(plan, plan.regions[0])], None
        places = attach(plan, host.lifetime, HERE)
    if isinstance(lone, Home):
        drivers = [_lone(plan, runs[0], lone.loop, context, receiver, host, company)]
    else:
        drivers = _row(plan, runs, places, context, receiver, host)
        _introduce(plan, drivers, company)
    last = drivers[0]
    last.place.leaves = leaves or not last.runs_here()
    last.each = each or (last.place.leaves and _may_block(plan, plan.regions[-1]))
    _begin(plan, drivers, receiver, host, called, home)
    return last


def _lone(
    plan: Plan,
    run: RegionRun,
    loop: asyncio.AbstractEventLoop,
    context: Context,
    receiver: Receiver[Any],
    host: FlowHost,
    company: Company | None,
) -> RegionDriver:
    """Make the driver of a flow of one region on its subscriber's loop: most inner flows are, and they come by the million."""
    driver = _driver(plan, plan.regions[0], run, loop, context.copy(), receiver, host, host.lifetime.hold())
    if company is not None and company.loop is loop:
        driver.company = company
    elif plan.source.operator.kind == "pushed":
        driver.company = Company(loop)
    return driver


def _row(
    plan: Plan,
    runs: list[RegionRun],
    places: list[Held],
    context: Context,
    receiver: Receiver[Any],
    host: FlowHost,
) -> list[RegionDriver]:
    """Make the drivers of a flow, the last one first, and link them."""
    drivers: list[RegionDriver] = []
    lifetime = host.lifetime
    for region, run, place in zip(reversed(plan.regions), reversed(runs), reversed(places), strict=True):
        attachment = place.attachment
        leaves = bool(drivers) and drivers[-1].loop is not attachment.loop
        downstream = Crossing.to(drivers[-1]) if drivers else receiver
        if drivers:
            # A region posts to the next one to the last: a failure behind the end too. So that keeps its loop for it.
            lifetime = drivers[-1].lifetime = host.lifetime.part()
        release = partial(attachment.detach, lifetime.hold())
        driver = place.driver = _driver(plan, region, run, attachment.loop, context.copy(), downstream, host, release)
        if drivers:
            driver.place.leaves = leaves
            if leaves and _may_block(plan, region):
                driver.hand_over(drivers[-1])
            drivers[-1].upstream.upstream = drivers[-1].place.before = driver
        drivers.append(driver)
    return drivers


def _may_block(plan: Plan, region: Region) -> bool:
    """Return whether the region pulls a source with code of the user, and so may wait for its elements."""
    source = plan.source.operator
    return region.boundary is None and isinstance(source, Pulled) and not source.plain


def _introduce(plan: Plan, drivers: list[RegionDriver], outer: Company | None) -> None:
    """Make a company of the regions that share an event loop, or may later share it with those of inner flows."""
    companies = {} if outer is None else {id(outer.loop): outer}
    loops = [id(driver.loop) for driver in drivers]
    for driver, loop in zip(drivers, loops, strict=True):
        reads = driver is drivers[-1] and isinstance(plan.source.operator, Pushed)
        if reads or loop in companies or loops.count(loop) > 1:
            driver.company = companies.get(loop) or companies.setdefault(loop, Company(driver.loop))


def _begin(
    plan: Plan,
    drivers: list[RegionDriver],
    receiver: Receiver[Any],
    host: FlowHost,
    called: bool,
    home: Scheduler,
) -> None:
    """Start the drivers, the last one first; the first opens the source."""
    first, last = drivers[-1], drivers[0]
    source: Any = plan.source.operator
    open_source: Callable[[], Subscription] | None = None
    if source.kind == "pushed":
        first.view = View(source.elsewhere)
        first.place.is_transparent = source.is_transparent
        host.reader = first
        first.lifetime = host.lifetime.part()
        given = {id(flow): flow for flow in source.inner} if plan.follows else {}
        open_source = partial(source.open, RegionInlet(first, first.lifetime, placed_at(plan.moved, home), given))
    for driver in drivers:
        driver.begin(
            receiver if driver is last else None,
            open_source if driver is first else None,
            called=called and driver is last,
        )


def _run(plan: Plan, region: Region) -> RegionRun:
    source: Any = plan.source.operator
    kind = "pushed" if region.boundary is not None else source.kind
    awaited = kind == "awaited"
    counted = kind == "pushed" or (kind == "pulled" and source.plain)
    return RegionRun(region.stages, region.feed, counted=counted, awaited=awaited)


def _driver(
    plan: Plan,
    region: Region,
    run: RegionRun,
    loop: asyncio.AbstractEventLoop,
    context: Context,
    receiver: Receiver[Any],
    host: FlowHost,
    release: Callable[[], None],
) -> RegionDriver:
    operator: Any = plan.source.operator
    kind = "pushed" if region.boundary is not None else operator.kind
    if kind == "awaited":
        awaited = AwaitedInput(operator, run.pace, region.feed, Budget.of(loop))
        return AwaitedDriver(awaited, run, region, context, receiver, host, release)
    feed: Input
    if kind == "pulled":
        feed = PulledInput(operator, run)
    elif region.boundary is not None:
        feed = PushedInput(region.boundary.prefetch, run)
    else:
        feed = PushedInput(operator.prefetch, run, told=operator.is_told)
    return RegionDriver(run, region, feed, loop, context, receiver, host, release)
