"""Structured Streaming and asyncio: micro-batches under demand.

Spark to asyncio (``Flow.from_spark(frame, checkpoint=...)``): `source` is the flow's side, `query` runs Spark's on
threads, `microbatch` is what is handed over, and `ledger` makes its effects happen once.
"""

from .ledger import Ledger as Ledger
from .ledger import SqliteLedger as SqliteLedger
from .ledger import exactly_once as exactly_once
from .microbatch import MicroBatch as MicroBatch
