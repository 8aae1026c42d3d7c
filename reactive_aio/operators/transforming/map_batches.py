"""The two stages that gather elements into batches, and make elements of the batches again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from sys import maxsize
from typing import Any, Final, TypeVar

import attrs
from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._fusion import Pace, Stage, Transform, label
from ...hooks import discard
from ...spec import UNBOUNDED
from .flat_map_iterable import Flattening

T = TypeVar("T")
R = TypeVar("R")

KINDS: Final = {
    "list": "list",
    "pandas.DataFrame": "DataFrame",
    "pyarrow.Table": "Table",
    "pyarrow.RecordBatch": "RecordBatch",
}
"""The types of batches, by package and name; the caller imports the package."""


def kind_of(kind: type[Any]) -> str:
    """Name a type by its package, wherever in that it is defined."""
    package = kind.__module__.partition(".")[0]
    return kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"


def check_kind(kind: object) -> None:
    """Raise unless the value is a kind of batch."""
    if not isinstance(kind, type) or kind_of(kind) not in KINDS:
        raise TypeError(f"map_batches(as_={label(kind)}): a batch is one of {', '.join(KINDS)}")


@frozen
class MapBatches(Stage[T, R]):
    """Stage of ``Flow.map_batches``. Where a batch begins is not promised, so that parts have their own."""

    fn: Callable[[Any], Iterable[R]]
    size: int
    kind: type[Any]

    @property
    def arguments(self) -> str:
        """The arguments. The kind of batch is shown only if it is not a list."""
        kind = "" if self.kind is list else f", as_={self.kind.__name__}"
        return f"{label(self.fn)}, {self.size}{kind}"

    def transform(self) -> Transform[T, R]:
        """Return an empty batch."""
        return Batching[R](Call(self.fn, self.kind), size=min(self.size, maxsize))  # `islice` takes no more


@define
class Batching(Flattening[Any, R]):
    """The batch that one subscription is filling, and the results that it reads of the batch before."""

    size: int = field(kw_only=True)
    held: list[Any] = field(init=False, factory=new_list)

    def paced(self, items: Iterator[Any], pace: Pace) -> Generator[R]:
        """Read the results of each batch."""
        return super().paced(self._batches(items), pace)

    def _batches(self, items: Iterator[Any]) -> Iterator[list[Any]]:
        while True:
            held = self.held
            held.extend(islice(items, self.size - len(held)))
            if len(held) < self.size:
                return
            yield self._taken()

    def _taken(self) -> list[Any]:
        held, self.held = self.held, []
        return held

    def demand(self, n: int) -> int:
        """Ask for what one batch has room for, since it may be enough."""
        return n if n in {0, UNBOUNDED} else self.size - len(self.held)

    def finish(self) -> Iterable[R]:
        """Read the current results to their end, and then those of the last batch, which is shorter."""
        yield from super().finish()
        if self.held:
            yield from super().paced(iter((self._taken(),)), Pace())

    def close(self) -> None:
        """Drop an unfinished batch, and the results that are being read."""
        discard(self._taken())
        super().close()

    @property
    def pending(self) -> bool:
        """Return whether there is a last batch to come, or more results of the current one."""
        return bool(self.held) or super().pending


@define
class Call:
    """Makes a batch of a list, and calls the function with it."""

    fn: Callable[[Any], Iterable[Any]]
    kind: type[Any]

    def __call__(self, items: list[Any]) -> Iterable[Any]:
        """Return an iterable of elements."""
        given = self.fn(items if self.kind is list else made(items, self.kind))
        if kind_of(type(given)) in KINDS and not isinstance(given, list):
            name = type(given).__name__
            rows = 'to_dict("records")' if name == "DataFrame" else "to_pylist()"
            raise TypeError(
                f"{label(self.fn)} returned a {name}, whose iterator gives columns. Return its rows, such as by .{rows}"
            )
        return given


def made(items: list[Any], kind: type[Any]) -> Any:
    """Make a table of elements."""
    columns = columns_of(items)
    make: Callable[[Any], Any] = kind if kind_of(kind) == "pandas.DataFrame" else kind.from_pydict
    return make(columns)


def columns_of(items: list[Any]) -> dict[str, list[Any]]:
    """Return the fields of elements as columns. Without names they are called ``_1`` or ``value``, as on Spark."""
    first: Any = items[0]
    kind = first.__class__
    if issubclass(kind, dict):
        names: Iterable[Any] = dict.fromkeys(name for item in items for name in item)
        return {name: [item.get(name) for item in items] for name in names}
    if issubclass(kind, tuple):
        labels: list[str] | None = getattr(first, "__fields__", None) or getattr(first, "_fields", None)
        columns = list(zip(*items, strict=True))
        return {name: list(column) for name, column in zip(labels or _numbered(len(columns)), columns, strict=True)}
    if attrs.has(kind):
        return {each.name: [getattr(item, each.name) for item in items] for each in attrs.fields(kind)}
    fields: dict[str, Any] | None = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        return {name: [getattr(item, name) for item in items] for name in fields}
    return {"value": items}


def _numbered(n: int) -> list[str]:
    return [f"_{at}" for at in range(1, n + 1)]
