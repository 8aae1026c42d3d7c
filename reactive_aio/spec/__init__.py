"""The contract of Reactive Streams: four protocols, the arithmetic of demand, the rules by number."""

from .demand import MOST_AT_ONCE as MOST_AT_ONCE
from .demand import UNBOUNDED as UNBOUNDED
from .demand import add_demand as add_demand
from .demand import bounded as bounded
from .demand import demand_error as demand_error
from .demand import quarter as quarter
from .demand import refill_after as refill_after
from .demand import subtract_demand as subtract_demand
from .protocols import Processor as Processor
from .protocols import Publisher as Publisher
from .protocols import Subscriber as Subscriber
from .protocols import Subscription as Subscription
from .rules import RULES as RULES
from .rules import quote as quote
