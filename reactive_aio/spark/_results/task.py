"""The code in Spark's Python workers if elements are results of jobs: the region, and frames for its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..._core.containers import new_list
from ..._remote.frames import Frame
from ...spec import UNBOUNDED
from .._task.connecting import Address
from .._task.outlet import Outlet
from .._task.slices import Slices
from .._task.sparing import read_on
from .._task.watch import WhileWanted
from .._task.worker import PartitionTask

if TYPE_CHECKING:
    import pyarrow as pa

FRAME: Final = "frame binary"
"""The schema of what comes out of a region over a DataFrame."""


@define(eq=False)
class Kept(Outlet):
    """Keeps the frames of a chunk until Spark takes them."""

    frames: list[Frame] = field(init=False, factory=new_list)

    def hear(self) -> None:
        """Go on: the whole partition is computed before the subscriber is asked."""
        self.granted = UNBOUNDED

    def say(self, frame: Frame) -> None:
        """Keep a frame."""
        self.frames.append(frame)

    def cleanup_failed(self, packed: bytes) -> None:
        """End with the failure, after the elements."""
        self.fail(packed)

    def end(self, passed: int, *, decided: bool) -> None:
        """Send nothing: Spark takes the results of a task all together or not at all."""

    def taken(self) -> Iterator[bytes]:
        """Return the kept elements."""
        frames, self.frames = self.frames, []
        return (b"".join(frame.encoded()) for frame in frames)


@frozen
class ResultsTask(PartitionTask):
    """A task whose elements are its results, in frames."""

    lifeline: Address | None = field(default=None, kw_only=True)
    """The address that listens as long as the results are needed."""

    schema = FRAME

    def over_items(self, _: int, items: Iterable[Any]) -> Iterator[bytes]:
        """Run over a partition of an RDD."""
        left = iter(items)  # PySpark hands over any iterable
        yield from self._frames(left)
        read_on(left)

    def over_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run over a partition of a DataFrame."""
        import pyarrow as pa

        arrow: Any = pa  # whose stubs know arrays by halves
        for frame in self._frames(self.rows(batches)):
            yield arrow.RecordBatch.from_arrays([arrow.array([frame], arrow.binary())], ["frame"])
        read_on(batches)

    def _frames(self, items: Iterator[Any] | Slices) -> Iterator[bytes]:
        from pyspark import TaskContext

        task = TaskContext.get()
        kept = Kept(0 if task is None else task.partitionId())
        with WhileWanted(self.lifeline):
            for _ in self.chunks(items, kept):
                yield from kept.taken()
            yield from kept.taken()
