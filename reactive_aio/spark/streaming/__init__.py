"""Structured Streaming and asyncio, both ways, under demand.

Spark to asyncio (``Flow.from_spark(frame, checkpoint=...)``): `source` is the flow's side, `query` runs Spark's on
threads, `microbatch` is what is handed over, and `ledger` makes its effects happen once.

The same by a writer of Spark's (`inbox`): `datasink` pushes the rows in the tasks of the query, over the `inboxwire`;
an `arrival` is a micro-batch on its way.

Asyncio to Spark (`feed`): `feed` keeps what Spark may ask for again in a `backlog`; `datasource` asks for it, in the
processes of the query, over the `feedwire`.

The processes of a query come in by the `reception`, on a `line`.
"""

from .arrival import WrittenBatch as WrittenBatch
from .feed import Feed as Feed
from .feed import feed as feed
from .inbox import Inbox as Inbox
from .inbox import inbox as inbox
from .ledger import Ledger as Ledger
from .ledger import SqliteLedger as SqliteLedger
from .ledger import exactly_once as exactly_once
from .line import register as register
from .microbatch import Consumable as Consumable
from .microbatch import MicroBatch as MicroBatch
