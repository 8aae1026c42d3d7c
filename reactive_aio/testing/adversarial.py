"""An event loop that takes the order of tasks and regions from a seed, to find code that relies on asyncio's order.

What may be permuted? asyncio documents that callbacks run in the order of ``call_soon``, and its own transports
rely on it (``connection_made`` before the first data, ``connection_lost`` before the end of a ``sleep(0)``). It does
not promise which of two tasks proceeds first. So:

- A plain callback keeps its place: nothing passes it, and it passes nothing.
- Between two plain callbacks the steps of tasks, the turns of regions and the calls of other threads are put in a
  new order. Each of them has an owner (the task, the region, the thread). Callbacks of one owner stay in order.
- A task that waited for a future, and a region, may also skip some passes, as if the awaited event had come later. So
  one can get ahead of another by any number of steps.

trio shuffles each batch of its tasks likewise. Skipping passes comes from the randomized schedulers of Burckhardt and
others (PCT).
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from threading import get_ident
from typing import Any, Final, ParamSpec, TypeVarTuple, Unpack, cast

from attrs import field, frozen

from .._clocks.virtual import VirtualTimeLoop
from .._clocks.windows import callback_of
from .._core.budgets import Budget, Taker

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")

HOLD: Final = 0.25
WAKEUPS: Final = {"task_wakeup", "__wakeup"}


@frozen(eq=False)
class _Call:
    """A callback that another thread has scheduled."""

    thread: int
    callback: Callable[..., object] = field(repr=False)

    def __call__(self, *args: Any) -> None:
        self.callback(*args)


def owner_of(callback: Any) -> object | None:
    """Return the owner of a callback: a task, a budget or a thread, or None.

    >>> owner_of(print)
    """
    if isinstance(callback, _Call):
        return owner_of(callback.callback) or callback.thread
    owner: object = getattr(callback, "__self__", None)
    return cast(object, owner) if isinstance(owner, (asyncio.Task, Budget)) else None


def _may_wait(callback: Any) -> bool:
    """Return whether the event that the callback waited for might have come later."""
    return getattr(callback, "__name__", "") in WAKEUPS


@frozen
class _Permuted:
    """Puts the waiting flows and tasks in a new order before each round. Some or all of them skip the round."""

    rng: random.Random
    hold: float

    def __call__(self, waiting: deque[Taker]) -> int:
        if self.rng.random() < self.hold:
            return 0
        everybody = [waiting.popleft() for _ in range(len(waiting))]  # others may be added by threads meanwhile
        self.rng.shuffle(everybody)
        held: list[Taker] = [each for each in everybody if self.rng.random() < self.hold]
        ready = [each for each in everybody if each not in held] or everybody
        waiting.extendleft(reversed(ready))
        if ready is not everybody:
            waiting.extend(held)
        return len(ready)


class _Shuffled(deque[asyncio.Handle]):
    """The queue of ready callbacks. Each batch that the loop is about to run is put in a new order first."""

    def __init__(self, rng: random.Random, hold: float) -> None:
        super().__init__()
        self._rng = rng
        self._hold = hold
        self._batch = 0  # how many handles in front have been put in order
        self._held: list[asyncio.Handle] = []  # those that sit out the batch; empty between batches

    def popleft(self) -> asyncio.Handle:
        """Take the next callback."""
        if not self._batch:
            self._arrange()
        self._batch -= 1
        handle = super().popleft()
        if not self._batch:
            self.extendleft(reversed(self._held))
            self._held = []
        return handle

    def copy(self) -> _Shuffled:
        """Return all callbacks, with those that skip the batch."""
        everything = _Shuffled(self._rng, self._hold)
        everything.extend((*self, *self._held))
        return everything

    def clear(self) -> None:
        """Remove all callbacks."""
        super().clear()
        self._batch, self._held = 0, []

    def _arrange(self) -> None:
        """Shuffle the callbacks between those that keep their place."""
        handles = [super(_Shuffled, self).popleft() for _ in range(len(self))]
        batch: list[asyncio.Handle] = []
        between: dict[object, list[asyncio.Handle]] = defaultdict(list)
        for handle in handles:
            owner = owner_of(callback_of(handle))
            if owner is None:
                batch += self._shuffled(between)
                between.clear()
                batch.append(handle)
            else:
                between[owner].append(handle)
        batch += self._shuffled(between)
        ready = [handle for handle in batch if not self._sits_out(handle)]
        if ready:
            there = set(map(id, ready))
            self._held = [handle for handle in batch if id(handle) not in there]
            batch = ready
        self._batch = len(batch)
        self.extendleft(reversed(batch))  # in front of what other threads have added meanwhile

    def _shuffled(self, between: dict[object, list[asyncio.Handle]]) -> list[asyncio.Handle]:
        turns = [owner for owner, handles in between.items() for _ in handles]
        self._rng.shuffle(turns)
        queues = {owner: iter(handles) for owner, handles in between.items()}
        return [next(queues[owner]) for owner in turns]

    def _sits_out(self, handle: asyncio.Handle) -> bool:
        return _may_wait(callback_of(handle)) and self._rng.random() < self._hold


class AdversarialLoop(VirtualTimeLoop):
    """An event loop that runs tasks and regions in an order taken from a seed, on virtual time.

    The same seed gives the same order, as long as no other thread takes part. Plain callbacks stay in the order of
    ``call_soon``, as asyncio documents it. The docstring of the module says which callbacks move. Code that depends on
    the order in which asyncio happens to resume tasks fails here with some seed.

    >>> import asyncio
    >>> async def main():
    ...     order = []
    ...     async def worker(name):
    ...         order.append(name)
    ...     async with asyncio.TaskGroup() as tasks:
    ...         for name in "abc":
    ...             tasks.create_task(worker(name))
    ...     return "".join(order)
    >>> for seed in range(3):
    ...     with asyncio.Runner(loop_factory=lambda: AdversarialLoop(seed)) as runner:
    ...         print(runner.run(main()))
    acb
    bca
    bca
    """

    def __init__(self, seed: int, *, virtual: bool = True, hold: float = HOLD) -> None:
        """Make a loop.

        Args:
            seed: the seed of the order.
            virtual: False for the real clock.
            hold: the share of passes, from 0 to below 1, that a task or region skips although it could go on.
        """
        if not 0 <= hold < 1:
            raise ValueError(f"AdversarialLoop(hold={hold}): hold must be at least 0 and below 1")
        super().__init__(virtual=virtual)
        self.seed = seed
        self._home = get_ident()
        rng = random.Random(seed)
        self._ready = _Shuffled(rng, hold)
        Budget.of(self).arrange = _Permuted(rng, hold)

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback, from any thread. A callback of another thread has no fixed order with the tasks here."""
        here = get_ident()
        if here != self._home:
            callback = cast("Callable[[Unpack[Ts]], object]", _Call(here, callback))
        return super().call_soon_threadsafe(callback, *args, context=context)

    def run_forever(self) -> None:
        """Run until stopped."""
        self._home = get_ident()
        super().run_forever()

    def __repr__(self) -> str:
        return f"<AdversarialLoop seed={self.seed} running={self.is_running()} closed={self.is_closed()}>"


def adversarial(
    seeds: int | Iterable[int] = 20, *, virtual: bool = True, hold: float = HOLD
) -> Callable[[Callable[P, Coroutine[Any, Any, object]]], Callable[P, None]]:
    """Turn an ``async def`` test into an ordinary one that runs it on an AdversarialLoop for each of the seeds.

    The failure under a seed carries a note that names it. With a number the seeds are 0, 1, 2 and so on.

    >>> @adversarial(seeds=5)
    ... async def test_in_order():
    ...     order = []
    ...     async def worker(name):
    ...         order.append(name)
    ...     async with asyncio.TaskGroup() as tasks:
    ...         tasks.create_task(worker("a"))
    ...         tasks.create_task(worker("b"))
    ...     assert order == ["a", "b"]
    >>> try:
    ...     test_in_order()
    ... except AssertionError as error:
    ...     print(*error.__notes__)
    failed on AdversarialLoop(seed=1); alone: @adversarial(seeds=[1])
    """
    if callable(seeds):
        raise TypeError("adversarial() is called before it decorates a test: write @adversarial()")
    chosen = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise ValueError(f"adversarial(seeds={seeds!r}): without a seed the test does not run")

    def decorate(test: Callable[P, Coroutine[Any, Any, object]]) -> Callable[P, None]:
        @functools.wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            for seed in chosen:
                factory = functools.partial(AdversarialLoop, seed, virtual=virtual, hold=hold)
                try:
                    with asyncio.Runner(loop_factory=factory) as runner:
                        runner.run(test(*args, **kwargs))
                except BaseException as error:
                    error.add_note(f"failed on AdversarialLoop(seed={seed}); alone: @adversarial(seeds=[{seed}])")
                    raise

        return run

    return decorate
