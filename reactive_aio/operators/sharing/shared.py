"""Sharing: which run of a flow may be joined, and what holds it open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar, get_args

from attrs import define, field, frozen

from ..._core.guard import block_ended
from ..._core.here import Here
from ..._fusion import Placed, calling_line
from ..._plan import Inlet, Nodes, Pushed
from ..._plan.nodes import FlowLike
from ...spec import Subscription
from .broadcast import Then, do
from .delivery import soon
from .log import Cursor
from .mutex import Mutex
from .reader import Distance, Reader
from .run import Run
from .taking import all_of

if TYPE_CHECKING:
    from ..._flow.flow import Flow
    from ..._flow.shared import Shared
    from .taking import Place

R = TypeVar("R", bound=Reader)
T = TypeVar("T")

Restart = Literal["always", "after_error", "never"]
"""The ends after which a new subscriber begins a new run, and does not get the replay and that end."""

_INSIDE: Final[ContextVar[tuple[Sharing, ...]]] = ContextVar("reactive_aio_shared_runs", default=())
"""In the context of a run: of whose run, and those around it."""


def check_restart(restart: object) -> None:
    """Raise unless the value is one of the words."""
    if restart not in get_args(Restart):
        raise ValueError(f"share(restart={restart!r}): choose one of {', '.join(map(repr, get_args(Restart)))}")


@frozen(eq=False)
class Holder:
    """A holder of a shared flow: its runs begin on this loop, in this context."""

    loop: asyncio.AbstractEventLoop
    context: Context


@define(eq=False)
class Sharing:
    """The state that all subscribers of a shared flow use. At most one run may be joined, and at most one is subscribed to the flow."""

    flow: FlowLike
    lag: int
    replay: int
    replay_for: float | None
    start: int
    restart: Restart
    linger: float | None
    evict_after: float | None = None
    _made_in: Context = field(init=False, factory=copy_context)
    mutex: Mutex = field(init=False, factory=Mutex)
    current: Run | None = field(init=False, default=None)
    """The run that may be joined."""
    connected: Run | None = field(init=False, default=None)
    """The run that is subscribed to the flow, until all of that has been cleaned up."""
    holder: Holder | None = field(init=False, default=None)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    @property
    def context(self) -> Context:
        """The context of the flow. It is never that of a subscriber, whose user and trace would apply to all."""
        return self._made_in if self.holder is None else self.holder.context

    def context_of_a_run(self) -> Context:
        """Return the context of a run, which names the run."""
        context = self.context.copy()
        context.run(_INSIDE.set, (*context.get(_INSIDE, ()), self))
        return context

    # -- the subscribers

    def join(self, kind: Callable[[Run, Any], R], inlet: Inlet[Any] | Place) -> R:
        """Let a subscriber join the current run, or begin one, by a reader of some kind; on the subscriber's loop."""
        self._check(inlet.context)
        if (before := self.current) is not None:
            before.look_at_home()
        with self.mutex:
            run = self._joinable()
            head = run.log.head  # it is let go of behind the lock
            reader = kind(run, inlet)
            calls = [*run.admit(reader), *self._begun(run)]
        del head
        for call in calls:
            call()
        run.look_after_home(reader)
        return reader

    def _check(self, context: Context) -> None:
        if self.linger is not None and self.holder is None:
            raise RuntimeError("share(linger=...) needs `async with`, because the run may outlive its subscribers")
        if self in context.get(_INSIDE, ()) and (self.connected is not None and self.connected is not self.current):
            raise RuntimeError("the cleanup of a shared flow can't subscribe to it: it would wait for its own end")

    def _joinable(self) -> Run:
        if self.current is None:
            self.current = Run(self)
        return self.current

    def _begun(self, run: Run) -> Iterable[Then]:
        """Begin a run, if it may: on the loop that holds the flow open, else on the first reader's running loop."""
        if run.begun:
            return ()
        holder = self.holder
        return (run.begin,) if holder is None else (partial(_begin_on, holder.loop, run),)

    # -- what a run says, with the lock

    def leave(self, run: Run) -> None:
        """Let no reader join a run any more."""
        if self.current is run:
            self.current = None

    def begun_next(self) -> Iterable[Then]:
        """Begin the run that has waited for the cleanup of another, if there is one."""
        run = self.current
        if run is None or run.begun:
            return
        if self.holder is not None:
            yield partial(_begin_on, self.holder.loop, run)
        for reader in run.everybody:  # any of them, as some may leave
            yield partial(reader.inlet.post, _begin, run)

    def begins_anew_behind(self, error: BaseException | None) -> bool:
        """Return whether a subscriber after this end begins a new run."""
        return self.restart == "always" or (self.restart == "after_error" and error is not None)

    def linger_over(self, run: Run) -> Iterable[Then]:
        """Note that a held run has no readers."""
        if self.linger is not None and self.holder is not None:
            yield partial(soon, self.holder.loop, self._wait_for_somebody, run, run.log.rest)

    def _wait_for_somebody(self, run: Run, absence: Cursor) -> None:
        if self.linger is None or self.holder is None or run.log.rest is not absence:
            return  # somebody has come, and has perhaps left on another thread, whose call was faster
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.holder.loop.call_later(self.linger, self._nobody_came, run, absence)

    def _nobody_came(self, run: Run, absence: Cursor) -> None:
        self._timer = None
        with self.mutex:
            # A run that has ended since is kept for its replay and its end, as one that ended before the last reader left.
            lingers = self.current is run and run.log.rest is absence and not run.log.ended
            calls = tuple(run.close()) if lingers else ()
        for call in calls:
            call()

    # -- who holds it open

    def hold(self) -> None:
        """Hold it open on the running loop, in the current context. The run begins."""
        loop, calls = asyncio.get_running_loop(), list[Then]()
        if self._is_abandoned and (before := self.current) is not None:
            before.look_at_home()
        with self.mutex:
            if self._is_abandoned:
                calls += self._let_go(None)
            if self.holder is not None:
                raise RuntimeError("the shared flow is already held open: use one `async with` at a time")
            self.holder = Holder(loop, copy_context())
            run = self._joinable()
            run.log.keep()
            calls += self._begun(run)
            if (absence := run.log.rest) is not None:
                calls.append(partial(self._wait_for_somebody, run, absence))
        do(calls)

    @property
    def _is_abandoned(self) -> bool:
        """Whether the event loop of a block was closed before the block had ended. It never ends."""
        return self.holder is not None and self.holder.loop.is_closed()

    async def release(self, error: BaseException | None) -> None:
        """Cancel the run that is held open, since the block has ended with an error or without. Wait for its cleanup."""
        loop, ended, here = asyncio.get_running_loop(), asyncio.Event(), get_ident()

        def tell() -> None:
            # At once, if it can be: else tasks that read would fail first. A TaskGroup around the block would cancel the
            # block for that, and lose what the block raises.
            if get_ident() == here:
                ended.set()
            else:
                soon(loop, ended.set)

        with self.mutex:
            if self.holder is None or self.holder.loop is not loop:  # it was closed in the meantime, and others hold it
                return
            calls = tuple(self._let_go(error))
            waits = self.connected is not None and self.connected.then(tell)
        do(calls)
        if waits:
            await all_of(ended)

    def _let_go(self, error: BaseException | None) -> Iterable[Then]:
        """Hold it open no more, with the lock."""
        if (run := self.current) is not None:
            yield from run.fail(block_ended("shared flow", error))
        self.current = self.holder = None
        if (timer := self._timer) is not None:
            self._timer = None
            yield timer.cancel


def _begin(run: Run) -> None:
    run.begin()


def _begin_on(loop: asyncio.AbstractEventLoop, run: Run) -> None:
    """Begin a run on a loop: now, if that is the running one."""
    with suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            run.begin()
            return
    try:
        loop.call_soon_threadsafe(run.begin)
    except RuntimeError as closed:
        run.cannot_begin(closed)


@frozen(eq=False)
class Share(Pushed[T], Here):
    """Source of ``Flow.share``."""

    STAYS: ClassVar[str] = (
        "a shared flow can't be pickled: its subscribers are in this process. Call share() behind the part that runs in another "
        "process, or send the flow before share()"
    )

    flow: FlowLike = field(repr=False)
    sharing: Sharing = field(repr=False)
    lag: int
    replay: int
    prefetch: int | None = field(repr=False)

    @property
    def arguments(self) -> str:
        """The arguments of the call, but for those that have no effect."""
        return ", ".join(f"{name}={value!r}" for name, value in self._said.items())

    @property
    def crossing(self) -> str:
        """Return the object between the flow and each subscriber."""
        return ", ".join(["shared", *(f"{name} {value}" for name, value in self._said.items())])

    @property
    def _said(self) -> dict[str, object]:
        own = self.sharing
        said = {
            "lag": self.lag,
            "replay": self.replay,
            "replay_for": own.replay_for,
            "start": own.start if own.start > 1 else None,
            "restart": own.restart if own.restart != "always" else None,
            "linger": own.linger,
            "evict_after": own.evict_after,
            "prefetch": self.prefetch,
        }
        return {name: value for name, value in said.items() if value}

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    @property
    def followed(self) -> None:
        """None: the run is apart, and a subscriber reads it on its own event loop."""
        return

    def admit(self, kind: Callable[[Run, Any], R], inlet: Inlet[Any] | Place) -> R:
        """Let a subscriber join the current run, or begin one."""
        return self.sharing.join(kind, inlet)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Join the run that there is, or begin one."""
        reader = self.admit(Reader, inlet)
        inlet.show(Distance(reader.broadcast.log, reader.cursor, self.lag))
        return reader


def shared_by(sharing: Sharing, flow: Flow[T], prefetch: int | None = None) -> Shared[T]:
    """Return the flow that shares another one."""
    from ..._flow.shared import Shared

    source: Share[T] = Share(flow, sharing, sharing.lag, sharing.replay, prefetch)
    return Shared(Nodes(Placed(source, calling_line())), sharing=sharing)
