"""Structured Streaming and asyncio, both ways, under demand.

Spark to asyncio (``Flow.from_spark(frame, checkpoint=...)``): `source` is the flow's side, `query` runs Spark's on
threads, `microbatch` is what is handed over, and `ledger` makes its effects happen once.

Asyncio to Spark (`feed`): `feed` keeps what Spark may ask for again in a `backlog`; `datasource` asks for it, in the
processes of the query, over the `feedwire`.
"""

from .feed import Feed as Feed
from .feed import feed as feed
from .ledger import Ledger as Ledger
from .ledger import SqliteLedger as SqliteLedger
from .ledger import exactly_once as exactly_once
from .microbatch import MicroBatch as MicroBatch
