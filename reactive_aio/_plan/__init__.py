"""The plan of a flow: its logical nodes, what engines can run of them, the rewrites, and the regions they are cut into."""

from typing import TYPE_CHECKING

from .capabilities import LOOP as LOOP
from .capabilities import Capabilities as Capabilities
from .nodes import FlowLike as FlowLike
from .nodes import Nodes as Nodes
from .nodes import PublishOn as PublishOn
from .nodes import Step as Step
from .nodes import SubscribeOn as SubscribeOn
from .nodes import reach_of as reach_of
from .nodes import reads_nothing as reads_nothing
from .nodes import scheduler_of as scheduler_of
from .plan import Plan as Plan
from .plan import Region as Region
from .rewrites import check_source as check_source
from .rewrites import reach_of_awaiting as reach_of_awaiting
from .rewrites import reach_of_sequence as reach_of_sequence
from .source import AtHand as AtHand
from .source import Awaited as Awaited
from .source import Buffered as Buffered
from .source import BufferReader as BufferReader
from .source import Elsewhere as Elsewhere
from .source import Feed as Feed
from .source import Gauge as Gauge
from .source import Host as Host
from .source import Inlet as Inlet
from .source import Outlet as Outlet
from .source import Pulled as Pulled
from .source import Pushed as Pushed
from .source import Receiver as Receiver
from .source import Source as Source
from .source import View as View

if TYPE_CHECKING:
    from .snapshot import BoundarySnapshot as BoundarySnapshot
    from .snapshot import InnerSnapshot as InnerSnapshot
    from .snapshot import OverflowSnapshot as OverflowSnapshot
    from .snapshot import RegionSnapshot as RegionSnapshot
    from .snapshot import SharedSnapshot as SharedSnapshot
    from .snapshot import Snapshot as Snapshot
    from .snapshot import SubscriberSnapshot as SubscriberSnapshot
    from .snapshot import TasksSnapshot as TasksSnapshot
else:
    from .._core.later import later

    __getattr__, __dir__ = later(
        __name__,
        {
            "BoundarySnapshot": ".snapshot",
            "InnerSnapshot": ".snapshot",
            "OverflowSnapshot": ".snapshot",
            "SharedSnapshot": ".snapshot",
            "SubscriberSnapshot": ".snapshot",
            "RegionSnapshot": ".snapshot",
            "Snapshot": ".snapshot",
            "TasksSnapshot": ".snapshot",
        },
    )
