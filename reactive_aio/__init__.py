"""Reactive Streams for asyncio, from one event loop to a Spark cluster.

The package in its layers, from the bottom: `spec` is the contract; `segments` fuses synchronous operators
into regions; `arbiter` moves demand from one source to the next; `operators` has one small module for each
operator; `schedulers` say where regions run; `flow` is what one writes; `runtime` and `spark` are the two
engines that run it.
"""

from . import schedulers as schedulers
from .ends import FlowIterator as FlowIterator
from .errors import BackpressureOverflowError as BackpressureOverflowError
from .errors import DriverUnreachableError as DriverUnreachableError
from .errors import EmptyFlowError as EmptyFlowError
from .errors import FlowError as FlowError
from .errors import LimitExceededError as LimitExceededError
from .errors import ProtocolViolation as ProtocolViolation
from .errors import RemoteError as RemoteError
from .errors import SchedulerClosedError as SchedulerClosedError
from .errors import SchemaMismatchError as SchemaMismatchError
from .errors import SourceCancelledError as SourceCancelledError
from .errors import SourceConsumedError as SourceConsumedError
from .errors import SparkJobError as SparkJobError
from .errors import StalledError as StalledError
from .errors import UnsupportedOnSparkError as UnsupportedOnSparkError
from .errors import WorkerDiedError as WorkerDiedError
from .flow import Flow as Flow
from .grouped import GroupedFlow as GroupedFlow
from .operators.recovering.backoff import Backoff as Backoff
from .operators.sourcing.callback import Emitter as Emitter
from .operators.transforming.handle import SynchronousSink as SynchronousSink
from .operators.transforming.signal import Completed as Completed
from .operators.transforming.signal import Failed as Failed
from .operators.transforming.signal import Next as Next
from .operators.transforming.signal import Signal as Signal
from .processor import processor as processor
from .segments import BoundarySnapshot as BoundarySnapshot
from .segments import InnerSnapshot as InnerSnapshot
from .segments import OverflowSnapshot as OverflowSnapshot
from .segments import RegionSnapshot as RegionSnapshot
from .segments import Snapshot as Snapshot
from .spec import UNBOUNDED as UNBOUNDED
from .spec import Processor as Processor
from .spec import Publisher as Publisher
from .spec import Subscriber as Subscriber
from .spec import Subscription as Subscription
