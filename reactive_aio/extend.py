"""For your own operators, sources, combinators, schedulers and engines.

These names are documented and stable. The packages behind them are not. The pages "Writing a ..." in the documentation
begin with an example of each kind.

An engine makes the elements of a flow elsewhere, and runs stages there:

>>> from attrs import evolve, field, frozen
>>> @frozen
... class Doubled(Pulled[int]):
...     items: tuple[int, ...]
...     stages: tuple[Placed[Stage], ...] = field(default=(), repr=False)
...     capabilities = Capabilities("an engine", frozenset({Requirement.ELEMENT}))
...     def lower(self, stage):
...         return evolve(self, stages=(*self.stages, stage))
...     def iterate(self):
...         return run_stages(self.stages, self.items, str(self))
>>> flow = flow_of(Doubled((1, 2))).map(lambda n: 2 * n)
>>> print(flow.describe(rewrites=True))
built:
    doubled((1, 2)).map(<lambda>)
rewritten:
    lower: map(<lambda>) is run by an engine
run:
R1  the subscriber's loop   doubled((1, 2))
>>> flow.run_sync()
[2, 4]
"""

from __future__ import annotations

from ._arbiter import Audience, Coordinator, Drain, Gathering, Inner, Listener
from ._flow.flow import flow_of
from ._fusion import InTurn, Parts, Placed, Placing, Requirement, Stage, Template, Transform, run_stages
from ._plan import (
    Awaited,
    Capabilities,
    Elsewhere,
    Feed,
    FlowLike,
    Host,
    Inlet,
    Outlet,
    Pulled,
    Pushed,
    Receiver,
    Source,
)
from ._runtime.connect import connect
from ._runtime.shared import SharedHost
from .operators.sourcing.poll import Poll
from .operators.timing.clockwork import Clocked, Clockwork
from .schedulers.base import Attachment, Released, Report, Reports, Scheduler, Work, WorkerRegion, Workers
from .spec import Subscription

__all__ = [
    "Attachment",
    "Audience",
    "Awaited",
    "Capabilities",
    "Clocked",
    "Clockwork",
    "Coordinator",
    "Drain",
    "Elsewhere",
    "Feed",
    "FlowLike",
    "Gathering",
    "Host",
    "InTurn",
    "Inlet",
    "Inner",
    "Listener",
    "Outlet",
    "Parts",
    "Placed",
    "Placing",
    "Poll",
    "Pulled",
    "Pushed",
    "Receiver",
    "Released",
    "Report",
    "Reports",
    "Requirement",
    "Scheduler",
    "SharedHost",
    "Source",
    "Stage",
    "Subscription",
    "Template",
    "Transform",
    "Work",
    "WorkerRegion",
    "Workers",
    "connect",
    "flow_of",
    "run_stages",
]
