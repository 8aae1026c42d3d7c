"""The machine behind the operators that await a function for several elements at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from inspect import isawaitable
from typing import Any, Final

from attrs import define, field

from ..._arbiter import Gathering, Inner
from ..._core import budgets
from ..._core.containers import new_dict, new_list
from ..._core.guard import FAILURES, as_of_a_generator, cancelled_from_outside, is_closed_with
from ..._core.identity import same_context
from ..._core.notes import add_note
from ..._fusion import label
from ..._plan.nodes import FlowLike
from ...hooks import discard
from ...spec import UNBOUNDED, quarter
from ._queues import REJECTED, ElementQueue, Ticket

AHEAD: Final = 4
"""How many times the number of awaited elements may be outstanding, if there is demand for so many."""

NOTHING: Final = object()


@define(eq=False)
class InFlight(Gathering):
    """Reads a flow, awaits ``fn`` for up to ``max_concurrency`` elements at a time, and delivers the results.

    The awaiting is done by workers: tasks that take one element after another, which costs half of what a task for each
    would. To an element a worker is as a task of its own. When one element has left context variables changed, or a
    cancellation unanswered, a new worker begins with the next.

    Invariants, whenever no method is on the stack:

    - an element is outstanding from the request for it until its result is delivered. When elements are requested, no
      more are outstanding than are wanted, or ``max_concurrency`` if that is more, and never ``AHEAD`` times as many;
    - while anything waits, there are ``max_concurrency`` workers, or one for each that does, and none of them is idle;
    - behind a failure or a cancellation no element is begun with, and the end is signalled when all workers are gone.
    """

    fn: Callable[[Any], Awaitable[Any]]
    max_concurrency: int
    queue: ElementQueue
    gives: Callable[[Any, Any], Any] | None = None
    """Makes the element to deliver of an element and its result, if it is not the result."""
    _flow: Inner | None = field(init=False, default=None)
    _requested: int = field(init=False, default=0)
    """Elements that were requested and have not come."""
    _workers: int = field(init=False, default=0)
    """Tasks that will look for another element."""
    _tasks: dict[asyncio.Task[None], None] = field(init=False, factory=new_dict)
    """All that have not ended, in the order in which they began."""
    _idle: list[asyncio.Future[None]] = field(init=False, factory=new_list)
    """The future that workers without work wait for."""
    _pristine: Context = field(init=False)
    _turn_over: float = field(init=False, default=0.0)
    """The time when workers that do not suspend have to give the event loop a turn."""
    _ended: bool = field(init=False, default=False)
    """Whether only the queue's elements are left, and after them the failure, if there is one."""
    _stopped: bool = field(init=False, default=False)
    """Whether no result is taken any more."""
    _failure: BaseException | None = field(init=False, default=None)
    _release: Callable[[], None] = field(init=False)

    def begin(self, flow: FlowLike) -> None:
        """Subscribe to the flow."""
        self._pristine = self.inlet.context.copy()
        self._release = self.inlet.hold()
        self._flow = self.enter(None)
        self.subscribe(flow, self._flow, at_once=True)

    # -- the Owner of the flow

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Start elements."""
        self._requested -= len(items)
        before = self.queue.count
        try:
            self.queue.add(items)
        except FAILURES as error:
            place = self.queue.count
            self._fail(error, place)
            discard(items[place - before + 1 :])
        self._staff()

    def on_end(self, inner: Inner) -> None:
        """Handle the arrived signals. The failure comes after the elements."""
        self._ended = True
        self._failure = inner.take_error()
        self.remove(inner)
        self._call(len(self._idle))
        self.go()

    # -- the Subscription of the region

    def cancel(self) -> None:
        """Cancel the flow and the workers, and drop undelivered results."""
        super().cancel()
        self._stop()
        discard(self.queue.take(UNBOUNDED))
        failure, self._failure = self._failure, None
        if failure is not None:
            self.inlet.dropped(failure)
        if not self._tasks:
            self._release()

    # -- delivering

    def step(self) -> bool:
        """Deliver results as far as there is demand, request the same number, and check for the end."""
        if self.over:
            return False
        results = self.queue.take(self.demand)
        if results:
            self.emit(results)
            return True
        self._ask()
        if self._ended and not self.queue.held and not self._tasks:
            failure, self._failure = self._failure, None
            if failure is None:
                self.complete()
            else:
                self.fail(failure)
        return False

    def _ask(self) -> None:
        """Ask for the elements that may be outstanding: at least a quarter of them at once, unless a worker would have to wait."""
        if self._flow is None or self._ended or not self.demand:
            return
        most = max(self.max_concurrency, min(self.demand, AHEAD * self.max_concurrency))
        missing = most - self.queue.held - self._requested
        if missing > 0 and (missing >= quarter(most) or len(self.queue.waiting) + self._requested < quarter(most)):
            self._requested += missing
            self._flow.request(missing)

    # -- awaiting

    def _staff(self) -> None:
        """Start workers for waiting elements. They use the turn of the region, in their own steps."""
        self.budget.lend()
        missing = len(self.queue.waiting) - self._call(len(self.queue.waiting))
        for _ in range(min(missing, self.max_concurrency - self._workers)):
            self._workers += 1
            context = self._pristine.copy()
            try:
                task = self.inlet.start(self._work(context), context)
            except FAILURES as error:  # of a task factory
                self._workers -= 1
                self._fail(error, None)
                return
            self._tasks[task] = None
            task.add_done_callback(self._gone)

    def _call(self, n: int) -> int:
        """Let up to ``n`` idle workers look again. Return how many do."""
        called = self._idle[-n:] if n else []
        del self._idle[len(self._idle) - len(called) :]
        for each in called:
            if not each.done():
                each.set_result(None)
        return len(called)

    async def _work(self, context: Context) -> None:
        """Await the function for one element after another."""
        queue, fn, gives, pristine = self.queue, self.fn, self.gives, self._pristine
        task = _this_task()
        ticket: Ticket | None = None
        awaitable: Any = NOTHING
        try:
            while same_context(context, pristine) and not task.cancelling():
                if not queue.waiting:
                    if self._ended:
                        break
                    idle = self.inlet.loop.create_future()
                    self._idle.append(idle)
                    await idle
                    continue
                ticket = queue.waiting.popleft()
                awaitable = NOTHING
                awaitable = fn(ticket[1])
                result = await awaitable
                if gives is not None:
                    result = gives(ticket[1], result)
                if self._stopped:
                    discard([] if result is REJECTED else [result])
                    break
                queue.put(ticket, result)
                ticket = None
                if not self._due:
                    # The first result since others have had their turns.
                    self._turn_over = self.budget.deadline()
                    self.later()
                elif queue.waiting and budgets.clock() >= self._turn_over:
                    self._turn_over = await self.budget.turn()
        except FAILURES as error:
            if is_closed_with(error, self.inlet.loop):
                raise
            self._broke_off(error, ticket, awaitable)
        self._workers -= 1
        self._staff()

    def _broke_off(self, error: BaseException, ticket: Ticket | None, awaitable: Any) -> None:
        """Handle an exception that ended a worker, perhaps in the middle of an element."""
        # A CancelledError that the function itself raises stays as it is: a region in a worker raises it.
        if isinstance(error, asyncio.CancelledError) and not self._stopped and _this_task().cancelling():
            error = cancelled_from_outside(error, f"the task of {self.inlet.where}")
        if ticket is None:
            self._fail(error, None)
        elif self._stopped and isinstance(error, asyncio.CancelledError):
            discard([ticket[1]])
        elif isinstance(error, TypeError) and awaitable is not NOTHING and not isawaitable(awaitable):
            self._fail(not_awaitable(self.fn, awaitable), ticket[0])
        else:
            self._fail(error, ticket[0])

    def _gone(self, task: asyncio.Task[None]) -> None:
        """Handle the end of a worker that did not do so itself. It was cancelled too early, or interrupted."""
        self._tasks.pop(task, None)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error, None)
        if self.over and not self._tasks:
            self._release()
        elif self._ended:
            self.later()

    # -- the end

    def _fail(self, error: BaseException, number: int | None) -> None:
        """Fail after the other workers have been cancelled and have ended, and after the deliverable results."""
        if self._stopped:
            if not isinstance(error, asyncio.CancelledError):
                self.inlet.dropped(error, again=True)
            return
        error = as_of_a_generator(error, label(self.fn), (StopIteration, StopAsyncIteration))
        add_note(error, f"in {self.inlet.where}{'' if number is None else f', on element #{number}'}")
        late, self._failure = self._failure, error
        self._ended = True
        if self._flow is not None:
            self.remove(self._flow)
        self._stop()
        if late is not None:
            self.inlet.dropped(late)
        self.later()

    def _stop(self) -> None:
        """Begin nothing more, and cancel what has begun."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        discard(self.queue.cut())


def not_awaitable(fn: Callable[[Any], object], given: object) -> TypeError:
    """Return the error for a function that returned something that can't be awaited."""
    advice = "use map() or filter() for an ordinary function"
    return TypeError(f"{label(fn)} returned a value that can't be awaited, of type {type(given).__name__}: {advice}")


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
