"""Stages: synchronous operators as values.

A stage is frozen and picklable. It belongs to a flow. For each subscription it gives a *transform*: itself where it
keeps no state, else a small object of its own that holds the state. Neither knows of signals, demand or event loops: a
transform turns an iterator into an iterator.

There are two ways to write one.

- By ``apply``, an ordinary generator. It is called once for every pass over a stretch of input, perhaps many times in a
subscription. State that must survive from one stretch to the next lives on the object.
- By a ``template``, the few lines that the operator adds to the loop of its region. All templates of a
  region are fused into one generator function, so an element costs the user's functions and little else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from .._core.beginning import redacted_beginning
from .._core.guard import FAILURES
from .fuse import Pace, fuse
from .requirement import ELEMENT, WHOLE, Requirement
from .template import Template

if TYPE_CHECKING:
    from .parts import Parts

T = TypeVar("T")
R = TypeVar("R")


GENERATORS: Final[tuple[type[Any], ...]] = (GeneratorType, AsyncGeneratorType)


class Transform(Generic[T, R]):
    """The work of a stage on the elements of one subscription."""

    __slots__ = ()

    template: ClassVar[Template | None] = None

    def apply(self, items: Iterator[T]) -> Iterator[R]:
        """Turn a stretch of input into output, lazily: pull an element only to answer for one."""
        return fuse((self,)).unpaced(items)

    def paced(self, items: Iterator[T], pace: Pace) -> Iterator[R]:
        """As `apply`. A transform that may emit many elements for one checks the clock here.

        Where ``pace.resumes`` it may return once ``pace.deadline`` has passed, and is called again with the same
        input, to go on from where it stopped.
        """
        return self.apply(items)

    def prelude(self) -> Iterable[R]:
        """Return the elements before any input. ``pending`` is true until all of them have been emitted."""
        return ()

    def finish(self) -> Iterable[R]:
        """Return the elements that are left when the input has completed."""
        return ()

    def close(self) -> None:
        """Let go of what is held when the subscription ends in any way. Called once, or never if nothing was begun."""

    def demand(self, n: int) -> int:
        """Return how many elements of input to request for ``n`` of output."""
        return n

    @property
    def done(self) -> bool:
        """Return whether no more input is needed."""
        return False

    @property
    def pending(self) -> bool:
        """Return whether output would still come if the input ended now, also in the middle of ``apply`` and ``finish``.

        A stage that says so ends with its last element. A stage that does not define it may give several elements for one, or
        may have a ``prelude`` or a ``finish``. Then it is asked on until there is nothing more.
        """
        return False

    @property
    def owing(self) -> bool:
        """Return whether output would still come, in a pass that is suspended, if the input failed now.

        The failure waits for it.
        """
        return self.pending


class InSteps(Transform[T, R]):
    """A transform that may take long at the end, before an element or behind the last one."""

    __slots__ = ()

    @property
    def in_steps(self) -> bool:
        """Return whether ``finish`` yields NOTHING between the steps, where it may be paused."""
        return True


class Stage(Transform[T, R]):
    """A synchronous operator; a frozen attrs class, which serves as its own transform unless it keeps state."""

    __slots__ = ()

    needs_whole_stream: ClassVar[bool] = False
    """Whether the result for an element depends on other elements of the stream. Then the stage can't run on parts of the
    stream side by side."""

    forwards: ClassVar[bool] = False
    """Whether the stage emits only input elements, so that it made none of them itself."""

    @property
    def requirement(self) -> Requirement:
        """The needs of the stage, of the place where it runs."""
        return WHOLE if self.needs_whole_stream else ELEMENT

    def transform(self) -> Transform[T, R]:
        """Return the transform for one subscription."""
        return self

    def in_parts(self) -> Parts | None:
        """Return how a stage that needs the whole stream runs on parts of it, and how the results are combined, or None.

        The two together have to give exactly the result of the stage over the whole, for any division into parts.
        """
        return None

    @property
    def name(self) -> str:
        """The name of the Flow method, as plans and error notes show it."""
        return snake(type(self).__name__)

    @property
    def arguments(self) -> str:
        """The arguments of the Flow method, as plans and error notes show them."""
        fields: tuple[Any, ...] = getattr(type(self), "__attrs_attrs__", ())
        return ", ".join(label(getattr(self, each.name)) for each in fields)

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


@lru_cache(maxsize=512)
def snake(name: str) -> str:
    """Return the name of a method by that of its class.

    >>> snake("FlatMap")
    'flat_map'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


SWITCH: Final = "REACTIVE_AIO_SHOW_ELEMENTS"
"""The environment variable by which elements and arguments are shown by their types alone: "0", or a word for it.

It is no hook, bound to a context: a value that slips through once is in a log for good. Worker processes inherit it.
"""


class Room(threading.local):
    """The room for labels within a label, as those of a flow's arguments within the flow's own."""

    left: int | None = None
    """None outside of a label."""


ROOM: Final = Room()
NAME: Final = len("Flow.of(")
"""Characters that a flow has before its arguments, or more. So labels are nested a few deep before there is no room."""


def label(value: object, most: int = 34) -> str:
    """Show an argument or element briefly: a function by its name, an object by its type, a long value by its beginning.

    A generator is shown by the function that made it.

    A URL is shown without its user, password and query. Whatever is shown of an element in a plan, a note or a message goes through here;
    see `SWITCH`.

    >>> from functools import partial
    >>> label(len), label(partial(int, base=2)), label(object()), label([1, 2]), label("x" * 100)
    ('len', 'partial(int)', 'object', '[1, 2]', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...")
    """
    left = ROOM.left
    if left is not None and left <= 0:
        return "..."
    # The flows within a flow may be a tree with more branches than anybody could wait for. So a label leaves less room to those
    # within it, and to those beside it.
    ROOM.left = (most if left is None else left) - NAME
    try:
        return _shown(value, most)
    except FAILURES:
        # A failure may be what is being described, and another one must not hide it.
        return type(value).__name__
    finally:
        ROOM.left = None if left is None else left - 1


def _shown(value: object, most: int) -> str:
    if isinstance(value, partial):
        return f"partial({_shown(value.func, most)})"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    kind = type(value)
    if kind in GENERATORS:
        name = str(getattr(value, "__name__", "<"))
        return kind.__name__ if name.startswith("<") else f"{name}()"
    hidden = os.environ.get(SWITCH, "").lower() in {"0", "false", "no", "off"}
    text = "<" if hidden else redacted_beginning(value)
    if text.startswith("<"):
        return type(value).__name__
    if "\n" in text:  # as of an array
        text = " ".join(map(str.strip, text.splitlines()))
    return text if len(text) <= most else text[: most - 3] + "..."
