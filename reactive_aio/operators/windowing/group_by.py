"""The operator that parts a flow by a key into groups, each a flow of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from attrs import Factory, define, field, frozen

from ..._arbiter import Inner
from ..._arbiter.timer import Timer
from ..._core.budgets import Stride
from ..._core.containers import new_deque, new_dict
from ..._core.guard import FAILURES, as_of_a_generator
from ..._core.notes import add_note
from ..._fusion import label
from ..._fusion.origin import Origin
from ..._plan import Inlet, Pushed, Step
from ..._plan.nodes import FlowLike
from ...errors import LimitExceededError, StalledError
from ...hooks import discard
from ...spec import Subscription, refill_after
from .parting import Parting
from .substream import Home, Substream

T = TypeVar("T")

LONGEST: Final = 32
"""The most elements whose keys are made between two looks at the clock."""


@frozen
class GroupBy(Pushed[T]):
    """Source of ``Flow.group_by``."""

    flow: FlowLike
    key: Callable[[Any], Hashable]
    max_groups: int
    ahead: int
    stall_after: float
    origin: Origin = field(repr=False)

    @property
    def arguments(self) -> str:
        """The function."""
        return label(self.key)

    @property
    def inner(self) -> tuple[FlowLike, ...]:
        """The flow."""
        return (self.flow,)

    def open(self, inlet: Inlet[Any]) -> Subscription:
        """Begin with the flow."""
        grouping = Grouping(inlet, self)
        grouping.begin()
        return grouping


@define(eq=False)
class Group(Substream):
    """The elements of one key."""

    key: Hashable

    @property
    def title(self) -> str:
        """The key."""
        return f"group {label(self.key)}"


@define(eq=False)
class Grouping(Parting):
    """Passes each element to the group of its key.

    No more than the prefetch is on its way or kept, of all groups together.
    """

    by: GroupBy[Any]
    _groups: dict[Hashable, Group] = field(init=False, factory=new_dict)
    """Those that still get elements, `max_groups` at most."""
    _unasked: deque[Group] = field(init=False, factory=new_deque)  # bounded by the groups
    """The groups that have not been requested yet."""
    _arrived: deque[list[Any]] = field(init=False, factory=new_deque)  # bounded by the prefetch
    _refill: int = field(init=False, default=Factory(lambda self: refill_after(self.by.ahead), takes_self=True))
    """The number of elements that are consumed before the same number is requested again."""
    _outstanding: int = field(init=False, default=0)
    _kept: int = field(init=False, default=0)
    """Elements that the groups keep."""
    _read: int = field(init=False, default=0)
    """The number of open groups with a reader."""
    _fed: dict[Group, None] = field(init=False, factory=new_dict)  # bounded by the groups
    """The groups that are read and may not wait for elements. Those that do are removed at the next check."""
    _seen: int = field(init=False, default=0)
    _stride: Stride = field(init=False, factory=lambda: Stride(LONGEST))
    _failed: bool = field(init=False, default=False)
    _home: Home = field(init=False)
    """Where the groups are read: they all end together."""
    _steps: tuple[Step] = field(init=False)
    _make: Callable[..., Any] = field(init=False)
    """Makes the flow of a group."""
    _timer: Timer = field(init=False)
    """Runs while nothing moves, and nothing can move unless an unread group is read."""

    def __attrs_post_init__(self) -> None:
        from ..._flow.grouped import GroupedFlow  # which is made of operators

        super().__attrs_post_init__()
        self._make = GroupedFlow
        self._timer = Timer(self.inlet, self._stalled)
        self._home = Home(self.inlet.loop, self.ending)
        self._steps = self._home.steps(self.by.origin)

    def begin(self) -> None:
        """Subscribe to the flow, and fill the prefetch."""
        self._outstanding = self.by.ahead
        self.upstream.request(self.by.ahead)
        # In a callback: a failure right behind the first elements drops groups that have not been requested by then.
        self.subscribe(self.by.flow, self.upstream, at_once=False)

    # -- the Subscription of the region

    def cancel(self) -> None:
        """Leave the groups to their readers, and drop the groups that were not requested."""
        unasked, self._unasked = self._unasked, deque()
        for group in unasked:
            self.release(group)
            group.drop()
        super().cancel()

    def cut(self) -> None:
        """Disconnect from the flow and its elements."""
        self._timer.cancel()
        super().cut()
        self._groups.clear()
        self._fed.clear()
        arrived, self._arrived = self._arrived, deque()
        for items in arrived:
            discard(items)

    # -- the Owner of the flow

    def on_chunk(self, inner: Inner, items: list[Any]) -> None:
        """Take elements for the groups."""
        self._outstanding -= len(items)
        self._arrived.append(items)
        self.go()

    def on_end(self, inner: Inner) -> None:
        """Handle the end, after the elements."""
        self.go()

    def step(self) -> bool:
        """Pass elements to their groups, or emit groups. Else request more or end."""
        if self._failed:
            return False
        if self._arrived:
            self._distribute(self._arrived.popleft())
            return True
        if self._unasked and self.demand:
            self._offer()
            if self._arrived:
                return True
        if self.upstream.ended:
            self._end()
        else:
            self._replenish()
        return False

    # -- elements and groups

    def _distribute(self, items: list[Any]) -> None:
        """Pass elements to their groups, those before a failure too."""
        chunks: dict[Hashable, list[Any]] = {}
        failure = self._sort_in_time(items, chunks)
        for each, chunk in chunks.items():
            group = self._groups.get(each)
            if group is None and not self.over:
                if len(self._groups) < self.by.max_groups:
                    group = self._open(each)
                elif failure is None:
                    failure = self._one_too_many(each)
            if group is None:
                discard(chunk)
                continue
            self._kept += len(chunk)
            if group.reader is not None:
                self._fed[group] = None
            group.add(chunk)
        try:
            if failure is not None:
                self._fail(failure)
        finally:
            del failure  # by its traceback it leads back to here

    def _sort_in_time(self, items: list[Any], chunks: dict[Hashable, list[Any]]) -> BaseException | None:
        """Put elements to their keys, as many as there is time for, up to a failure. The others wait in front."""
        failure, at, until = None, 0, self.budget.moment()
        count = self._stride.begin()
        while at < len(items) and failure is None:
            failure = self._sort(items[at : at + count], chunks)
            at += count
            if self._stride.is_over(until):
                break
            count = self._stride.length
        rest = items[at:]
        if failure is not None:
            discard(rest)
        elif rest:
            self._arrived.appendleft(rest)
        try:
            return failure
        finally:
            del failure  # by its traceback it leads back to here

    def _sort(self, items: list[Any], chunks: dict[Hashable, list[Any]]) -> BaseException | None:
        """Put elements to their keys, up to a failure. It is not kept in the frame that it comes through."""
        key, at = self.by.key, 0
        try:
            for at, item in enumerate(items):  # noqa: B007 - it tells where a failure was
                chunks.setdefault(key(item), []).append(item)
        except FAILURES as error:
            discard(items[at:])
            return self._located(error, self._seen + at)
        self._seen += len(items)
        return None

    def _open(self, key: Hashable) -> Group:
        group = self._groups[key] = Group(self.inlet.context, self, key)
        self._unasked.append(group)
        self.audience.join(group)
        return group

    def _offer(self) -> None:
        unasked, make = self._unasked, self._make
        nodes, steps, origin = self._home.nodes, self._steps, self.by.origin
        made: list[Any] = []
        for _ in range(min(self.demand, len(unasked))):
            group = unasked.popleft()
            made.append(make(nodes(group, steps, origin), key=group.key))
        self.emit(made)

    def _replenish(self) -> None:
        """Ask for more when three quarters have been consumed or nothing is on its way.

        See whether anything can move.
        """
        consumed = self.by.ahead - self._outstanding - self._kept
        if consumed and (not self._outstanding or consumed >= self._refill):
            self._outstanding += consumed
            self.upstream.request(consumed)
        if self._outstanding or not self._is_stuck():
            self._timer.stop()
        elif not self._timer.running:
            self._timer.start(self.by.stall_after)

    def _is_stuck(self) -> bool:
        """Return whether a subscriber waits for elements that can't come before an unread group is read."""
        while self._fed:
            group, _ = self._fed.popitem()
            if not group.starves:
                self._fed[group] = None
                return False
        return self._read > 0 or self.demand > 0

    # -- what gives the groups their elements

    def on_opened(self, substream: Substream) -> None:
        """Count a group that is read, which waits for nothing as yet."""
        assert isinstance(substream, Group)
        self._read += 1
        self._fed[substream] = None

    def on_taken(self, substream: Substream, n: int) -> None:
        """Ask for more in the place of what was taken, in an event: this is the context of a reader."""
        self._kept -= n
        if not self._outstanding or self.by.ahead - self._outstanding - self._kept >= self._refill:
            self.later()

    def on_starving(self, substream: Substream) -> None:
        """Check whether this reader waits in vain."""
        if not self._outstanding:
            self.later()

    def on_left(self, substream: Substream, kept: int) -> None:
        """Forget a group. Another one may be opened for its key. All else comes in an event: this is the context of a reader."""
        assert isinstance(substream, Group)
        self._kept -= kept
        self._read -= 1
        self._fed.pop(substream, None)
        self._groups.pop(substream.key, None)
        super().on_left(substream, kept)
        if not self.audience.over:
            self.later()

    def release(self, substream: Substream) -> None:
        """Pass no more elements to a group."""
        assert isinstance(substream, Group)
        self._groups.pop(substream.key, None)
        self._kept -= len(substream.kept)
        super().release(substream)

    # -- the end

    def _end(self) -> None:
        """Pass the end on to the groups, and to the region."""
        error = self.upstream.take_error()
        if error is not None:
            self._fail(error)
        elif not self.audience.over:
            self.close(None)
        elif self.ending.ended:
            self.complete()

    def complete(self) -> None:
        """Complete when all groups have been emitted."""
        if not self._unasked:
            super().complete()

    def _fail(self, error: BaseException) -> None:
        """Fail the groups, and then the whole flow. Groups that were not requested can't be read any more."""
        self._failed = True
        unasked, self._unasked = self._unasked, deque()
        for group in unasked:
            group.drop()
        self.close(error)

    def _located(self, error: BaseException, index: int) -> BaseException:
        error = as_of_a_generator(error, label(self.by.key))
        add_note(error, f"in {self.inlet.where}, on element #{index}")
        return error

    def _one_too_many(self, key: Hashable) -> LimitExceededError:
        return LimitExceededError(
            f"the key {label(key)} needs a new group, but {self.by.max_groups} groups are open: {self.inlet.where}. "
            "Raise max_groups, or cancel the readers of groups that you no longer need"
        )

    def _stalled(self) -> None:
        groups = list(self._groups.values())
        unread = [each.title for each in groups if each.reader is None]
        named = ", ".join(unread[:3]) + (", ..." if len(unread) > 3 else "")
        waiting = len(groups) - len(unread)
        self._fail(
            StalledError(
                f"nothing has moved for {self.by.stall_after} s: {self.inlet.where}. Groups that nobody reads ({len(unread)}: {named}) "
                f"hold all of the prefetch, {self.by.ahead} elements. The groups with a reader ({waiting}) wait for elements. "
                "Raise the max_concurrency of the operator that reads the groups, or cancel readers of old groups, or make fewer keys"
            )
        )
