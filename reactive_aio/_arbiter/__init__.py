"""The arbiter between sources that follow each other: which one may signal, and how much."""

from .arbiter import SubscriptionArbiter as SubscriptionArbiter
from .audience import Audience as Audience
from .audience import Listener as Listener
from .coordinator import Coordinator as Coordinator
from .drain import Drain as Drain
from .gathering import Gathering as Gathering
from .in_order import InOrder as InOrder
from .inner import Appended as Appended
from .inner import Inner as Inner
from .inner import Owner as Owner
from .merging import Merging as Merging
