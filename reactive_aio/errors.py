"""The errors of the library.

::

    FlowError
    ├── EmptyFlowError (LookupError)      first() or last() of a flow without elements
    ├── ProtocolViolation                 the other side broke a rule of Reactive Streams
    ├── SchedulerClosedError              the loop or thread of a region ended in the middle
    ├── WorkerDiedError                   a worker process of a region ended in the middle
    ├── SourceConsumedError               a one-shot source was subscribed to a second time
    ├── SourceCancelledError              a function or source raised CancelledError, with nobody cancelling the flow
    │   ├── TaskCancelledError            the task of a source was cancelled by somebody else, such as a loop that ends
    │   └── SharedClosedError             the block of a shared flow has ended, or that of a hub was cancelled
    ├── BackpressureOverflowError         a source that can't be slowed was faster than its subscriber
    ├── LimitExceededError                more came than an operator was allowed to keep or to expect
    ├── HubClosedError                    an element was emitted to a hub that has ended
    ├── SlowSubscriberError               a subscriber of a shared flow held up the others for too long
    ├── StalledError                      what is held back waits for what is not read
    ├── UnsupportedOnSparkError           an operator that has no meaning on a cluster
    ├── SparkJobError                     the job of a Spark region failed for good
    │   └── DriverUnreachableError        its tasks could not connect to this process
    ├── SchemaMismatchError (ValueError)  an element does not fit the columns it is to be written to
    └── RemoteError                       stands for an exception that could not be pickled

Bad arguments are ``TypeError`` and ``ValueError``, raised when the flow is built.
"""

from __future__ import annotations


class FlowError(Exception):
    """The base of the errors of the library."""


class EmptyFlowError(FlowError, LookupError):
    """An element was asked for and the flow ended without one."""


class ProtocolViolation(FlowError):  # noqa: N818 - the term of the field
    """A publisher or subscriber of other code broke a rule of Reactive Streams."""


class SchedulerClosedError(FlowError):
    """The loop or thread that a region runs on ended before the stream did."""


class WorkerDiedError(FlowError):
    """A worker process of the pool that a region runs on exited or was killed."""


class SourceConsumedError(FlowError):
    """A source that can be read once only was subscribed to again."""


class SourceCancelledError(FlowError):
    """A function or source of a flow raised CancelledError without a cancel, or other code cancelled its task."""


class TaskCancelledError(SourceCancelledError):
    """Other code cancelled the task that runs a source, as a loop does with its tasks when it ends.

    An operator that recovers from every ``Exception`` does not recover from this one, unless it is named.
    """


class SharedClosedError(SourceCancelledError):
    """The ``async with`` block of a shared flow, or a block of a hub that is cancelled, has ended while a subscriber read.

    Its cause is the exception that has ended the block, if there was one. An operator that recovers from every
    ``Exception`` does not recover from this one, unless it is named.
    """


class BackpressureOverflowError(FlowError):
    """A source that can't be slowed had an element for which there was neither demand nor room."""


class LimitExceededError(FlowError):
    """More came than an operator was allowed to keep, or than an end expects."""


class HubClosedError(FlowError):
    """An element was emitted to a hub that has ended."""


class SlowSubscriberError(FlowError):
    """A subscriber of a shared flow held up the others for too long. It fails alone."""


class StalledError(FlowError):
    """Nothing could move any more: what an operator holds back waits for a flow that nobody reads."""


class UnsupportedOnSparkError(FlowError):
    """An operator that has no distributed meaning was left in a Spark region."""


class SparkJobError(FlowError):
    """The Spark job behind a region failed for good, or its session is gone."""


class DriverUnreachableError(SparkJobError):
    """The tasks of a Spark region could not connect to the process that reads them. The text says what was tried."""


class SchemaMismatchError(FlowError, ValueError):
    """An element does not fit the columns that it is to be written to."""


class RemoteError(FlowError):
    """Stands for an exception of another process that could not be pickled. It has its text."""
