"""Who may speak, and how much: the arbiter between sources that follow each other."""

from .arbiter import SubscriptionArbiter as SubscriptionArbiter
from .coordinator import Coordinator as Coordinator
from .drain import Drain as Drain
