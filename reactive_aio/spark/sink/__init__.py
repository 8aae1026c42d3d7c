"""The writers for ``Flow.to_spark``, and the report that it returns. Spark writes a flow in batches.

`schema` and `columns` turn elements into a table of Arrow. `writers` are the places to write to. `writing` writes a
flow there, batch by batch, by `..calls`, which keep the JVM off the event loop.
"""

from ._files import Files as Files
from ._writers import Batch as Batch
from ._writers import BatchWriter as BatchWriter
from ._writers import Committed as Committed
from ._writers import Frames as Frames
from ._writers import Table as Table
