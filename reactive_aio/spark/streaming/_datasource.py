"""The data source ``reactive_aio`` of Spark, in the processes of a streaming query: it asks the event loop for rows.

`datasink` writes rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ...errors import SparkJobError
from ._arrow import from_arrow
from ._datasink import FlowWriter
from ._feedwire import ANSWER, BEGIN, COMMIT, DONE, FETCH, LATEST, OFFSET, QUESTION
from ._line import dial, option

# `Any` stands for offsets, which Spark wants as dictionaries of anything, and for batches of Arrow.

UNLIMITED: Final = 2**63 - 1


class FlowSource(DataSource):
    """``format("reactive_aio")`` of ``readStream``, with the options of a feed, and of ``writeStream``, with an inbox's."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "reactive_aio"

    def schema(self) -> StructType:
        """Return the schema of the feed."""
        return StructType.fromJson(json.loads(option(self.options, "schema")))

    def streamReader(self, schema: StructType) -> FlowReader:  # noqa: N802 - Spark's name
        """Return a reader, which connects when it is first used."""
        del schema
        return FlowReader(dict(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> FlowWriter:  # noqa: N802 - Spark's name
        """Return a writer. Only the complete mode overwrites: each of its batches is the whole result."""
        del overwrite
        return FlowWriter(dict(self.options), schema)


class Rows(InputPartition):
    """The rows between two offsets, for one task."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start = start
        self.end = end


class FlowReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Asks for offsets in the process that plans the query, and for rows in the tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._connection: FeedConnection | None = None
        self._to_the_end = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Begin with the first row of the feed."""
        return self._offset(self._ask(BEGIN))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Limit a batch to the size that the feed allows."""
        return ReadMaxRows(int(option(self._options, "rows")))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Admit the arrived rows, up to the limit. To run to the end of the flow, wait for the next row."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else UNLIMITED
        return self._offset(self._ask(LATEST, self._place(start), most, int(self._to_the_end)))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Count as available all elements that the flow will emit: it makes them on request."""
        self._to_the_end = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Distribute the rows to tasks."""
        first, last = self._place(start), self._place(end)
        self._ask(LATEST, first, last - first)  # after a restart the flow has to begin here; any task may come first
        parts = max(1, min(int(option(self._options, "partitions")), last - first))
        cuts = [first + (last - first) * at // parts for at in range(parts + 1)]
        return [Rows(*pair) for pair in pairwise(cuts) if pair[0] < pair[1]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Fetch the rows of a task."""
        assert isinstance(partition, Rows)
        connection = FeedConnection(self._options)
        try:
            stream = connection.ask(FETCH, partition.start, partition.end)
        finally:
            connection.close()
        yield from from_arrow(stream)

    def commit(self, end: dict[str, Any]) -> None:
        """Report which rows will not be requested again."""
        self._connected().ask(COMMIT, self._place(end))

    def stop(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()

    def _ask(self, kind: int, *numbers: int) -> int:
        (offset,) = OFFSET.unpack(self._connected().ask(kind, *numbers))
        found: int = offset
        return found

    def _connected(self) -> FeedConnection:
        if self._connection is None:
            self._connection = FeedConnection(self._options)
        return self._connection

    def _offset(self, place: int) -> dict[str, Any]:
        return {"feed": option(self._options, "feed"), "offset": place}

    def _place(self, offset: dict[str, Any]) -> int:
        own = option(self._options, "feed")
        if "feed" not in offset:
            raise SparkJobError(
                f"the checkpoint belongs to another source, not to feed {own!r}. Use another checkpoint for this query"
            )
        if offset["feed"] != own:
            raise SparkJobError(
                f"the checkpoint belongs to feed {offset['feed']!r}, not to feed {own!r}, and a flow can't be read again "
                "from the middle. Make the feed with a name and a function from the offset to the flow. Or write files with "
                "Flow.to_spark(), and read these with Spark"
            )
        place: int = offset["offset"]
        return place


class FeedConnection:
    """A connection to the feed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._socket = dial(options, "the feed of the stream")
        self._file = self._socket.makefile("rb")

    def ask(self, kind: int, *numbers: int) -> bytes:
        """Send a request, and wait for the answer."""
        self._socket.sendall(QUESTION.pack(kind, *numbers, *(0,) * (3 - len(numbers))))
        head = self._read(ANSWER.size)
        answer, length = ANSWER.unpack(head)
        data = self._read(length)
        if answer != DONE:
            raise SparkJobError(data.decode())
        return data

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise SparkJobError("the feed of the stream was closed")
        return data

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()
