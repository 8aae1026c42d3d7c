"""The audience of a run: the receivers of its signals, which come and go while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from attrs import define, field

from .._core.containers import new_dict
from ..hooks import drop_error


class Listener(Protocol):
    """One of an audience."""

    def end(self, error: BaseException | None, /) -> None:
        """Take the end of the run, or its failure. It has left by then."""


L = TypeVar("L", bound=Listener)


def _nothing() -> None:
    """Do nothing: the last listener has left a run that is over."""


@define(eq=False)
class Audience(Generic[L]):
    """The listeners of one run. The owner of the audience decides which elements they get.

    ::

        PLAYING ──the last one leaves──► OVER: `_deserted` is called
            └──────── end ─────────────► OVER: each one gets the end

    - It is over once. The leave of the last listener is one event, and none if the run has ended before.
    - A failure without listeners goes to ``_dropped``, once.
    - A listener that has left gets no signal, even if it left because of a signal to another one.
    """

    _deserted: Callable[[], None]
    """Cancels the run when its last listener has left."""
    _dropped: Callable[[BaseException], None] = drop_error
    members: dict[L, None] = field(init=False, factory=new_dict)
    """The listeners, in the order in which they joined."""
    over: bool = field(init=False, default=False)

    def join(self, member: L) -> None:
        """Add a listener. An audience that is over can't be joined: it takes a new run."""
        if self.over:
            raise RuntimeError("the run is over: nobody can join it any more")
        self.members[member] = None

    def leave(self, member: L) -> None:
        """Remove a listener, if it is one."""
        if member in self.members:
            del self.members[member]
            if not self.members:
                self._close()()

    def end(self, error: BaseException | None) -> None:
        """Signal the end or the failure to all subscribers, or pass it to the hook where there are none."""
        for _ in self.ends(error):
            pass

    def ends(self, error: BaseException | None) -> Iterator[None]:
        """Do as `end` does, one subscriber after another, in steps. It is over with the first."""
        self._close()
        if error is not None and not self.members:
            self._dropped(error)
        for member in tuple(self.members):
            if member in self.members:
                del self.members[member]
                member.end(error)
                yield

    def _close(self) -> Callable[[], None]:
        self.over = True
        deserted, self._deserted = self._deserted, _nothing  # it leads back to who has the audience
        return deserted
