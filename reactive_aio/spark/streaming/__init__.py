"""Structured Streaming and asyncio, both ways, under demand.

Spark to asyncio (``Flow.from_spark(frame, checkpoint=...)``): `source` is the side of the flow, and `query` runs the
side of Spark on threads. `microbatch` is the element, and `ledger` makes its effects happen once.

The same by a writer for Spark (`inbox`): `datasink` pushes the rows in the tasks of the query, over the `inboxwire`. An
`arrival` is a micro-batch on its way.

Asyncio to Spark (`feed`): `feed` keeps the rows that Spark may ask for again in a `backlog`. `datasource` asks for
them, in the processes of the query, over the `feedwire`. The processes of a query connect to the `reception`, on a
`line`.
"""

from ._arrival import WrittenBatch as WrittenBatch
from ._feed import Feed as Feed
from ._feed import feed as feed
from ._inbox import Inbox as Inbox
from ._inbox import inbox as inbox
from ._ledger import Ledger as Ledger
from ._ledger import SqliteLedger as SqliteLedger
from ._ledger import exactly_once as exactly_once
from ._line import register as register
from ._microbatch import Consumable as Consumable
from ._microbatch import MicroBatch as MicroBatch
