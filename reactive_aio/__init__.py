"""Reactive Streams for asyncio, from one event loop to a Spark cluster.

The package in its layers, from the bottom: `spec` is the contract. `_fusion` makes one function of synchronous
operators. `_plan` holds the nodes of a flow, rewrites them for the engines and cuts them into regions. `_arbiter` moves
demand from one source to the next. `schedulers` say where regions run. `operators` has one small module for each
operator. `_flow` has the classes that a user writes with. `_runtime` and `spark` are the two engines that run it.
`extend` is for code that extends the library.
"""

from typing import TYPE_CHECKING

from ._flow.ends import FlowIterator as FlowIterator
from ._flow.flow import Flow as Flow
from .errors import BackpressureOverflowError as BackpressureOverflowError
from .errors import DriverUnreachableError as DriverUnreachableError
from .errors import EmptyFlowError as EmptyFlowError
from .errors import FlowError as FlowError
from .errors import HubClosedError as HubClosedError
from .errors import LimitExceededError as LimitExceededError
from .errors import ProtocolViolation as ProtocolViolation
from .errors import RemoteError as RemoteError
from .errors import SchedulerClosedError as SchedulerClosedError
from .errors import SchemaMismatchError as SchemaMismatchError
from .errors import SharedClosedError as SharedClosedError
from .errors import SlowSubscriberError as SlowSubscriberError
from .errors import SourceCancelledError as SourceCancelledError
from .errors import SourceConsumedError as SourceConsumedError
from .errors import SparkJobError as SparkJobError
from .errors import StalledError as StalledError
from .errors import TaskCancelledError as TaskCancelledError
from .errors import UnsupportedOnSparkError as UnsupportedOnSparkError
from .errors import WorkerDiedError as WorkerDiedError
from .spec import UNBOUNDED as UNBOUNDED
from .spec import Processor as Processor
from .spec import Publisher as Publisher
from .spec import Subscriber as Subscriber
from .spec import Subscription as Subscription

if TYPE_CHECKING:
    from . import schedulers as schedulers
    from ._flow.batches import Batch as Batch
    from ._flow.batches import Batches as Batches
    from ._flow.grouped import GroupedFlow as GroupedFlow
    from ._flow.hub import Hub as Hub
    from ._flow.keyed import KeyedFlow as KeyedFlow
    from ._flow.processor import processor as processor
    from ._flow.shared import Shared as Shared
    from ._flow.state import State as State
    from ._plan.snapshot import BoundarySnapshot as BoundarySnapshot
    from ._plan.snapshot import InnerSnapshot as InnerSnapshot
    from ._plan.snapshot import OverflowSnapshot as OverflowSnapshot
    from ._plan.snapshot import RegionSnapshot as RegionSnapshot
    from ._plan.snapshot import SharedSnapshot as SharedSnapshot
    from ._plan.snapshot import Snapshot as Snapshot
    from ._plan.snapshot import SubscriberSnapshot as SubscriberSnapshot
    from .operators.recovering.backoff import Backoff as Backoff
    from .operators.sharing.emission import Offer as Offer
    from .operators.sourcing.callback import Emitter as Emitter
    from .operators.sourcing.poll import Poll as Poll
    from .operators.transforming.handle import SynchronousSink as SynchronousSink
    from .operators.transforming.signal import Completed as Completed
    from .operators.transforming.signal import Failed as Failed
    from .operators.transforming.signal import Next as Next
    from .operators.transforming.signal import Signal as Signal
else:
    from ._core.later import later

    __getattr__, __dir__ = later(
        __name__,
        {
            "schedulers": ".schedulers",
            "Batch": "._flow.batches",
            "Batches": "._flow.batches",
            "GroupedFlow": "._flow.grouped",
            "Hub": "._flow.hub",
            "KeyedFlow": "._flow.keyed",
            "processor": "._flow.processor",
            "Shared": "._flow.shared",
            "State": "._flow.state",
            "BoundarySnapshot": "._plan.snapshot",
            "InnerSnapshot": "._plan.snapshot",
            "OverflowSnapshot": "._plan.snapshot",
            "RegionSnapshot": "._plan.snapshot",
            "SharedSnapshot": "._plan.snapshot",
            "Snapshot": "._plan.snapshot",
            "SubscriberSnapshot": "._plan.snapshot",
            "Backoff": ".operators.recovering.backoff",
            "Offer": ".operators.sharing.emission",
            "Emitter": ".operators.sourcing.callback",
            "Poll": ".operators.sourcing.poll",
            "SynchronousSink": ".operators.transforming.handle",
            "Completed": ".operators.transforming.signal",
            "Failed": ".operators.transforming.signal",
            "Next": ".operators.transforming.signal",
            "Signal": ".operators.transforming.signal",
        },
    )
    __all__ = [name for name in __dir__() if name[0] != "_" and name != "TYPE_CHECKING"]
