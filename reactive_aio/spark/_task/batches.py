"""Arrow's batches as elements: the rows of a DataFrame are not taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import frozen

from .rows import Reading, reading

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# `Any` stands for Arrow, whose stubs know it by halves.


@frozen
class ReadingBatches(Reading):
    """A batch is an element as it is."""

    large: ClassVar[bool] = True

    def elements(self, batch: Any) -> Iterator[Any]:
        """Yield the batch, with the names that the columns of the frame have."""
        if self.blank:
            batch = batch.select([])
        elif self.labels is not None:
            batch = batch.rename_columns(list(self.labels))
        yield batch


def reading_of(as_: type[Any], schema: StructType) -> Reading:
    """Check ``as_`` of ``from_spark``: rows become elements, or batches of them do."""
    import pyarrow as pa

    if as_ is not pa.RecordBatch:
        return reading(as_, schema, batches=True)
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        to_arrow_schema(schema, timezone="UTC")
    except Exception as error:  # of PySpark, which names the type
        raise TypeError(f"from_spark(as_=RecordBatch): Arrow has no type for a column of the frame: {error}") from None
    return ReadingBatches(as_)
