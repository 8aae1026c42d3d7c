"""The entries of what looks at the clock; see `tests.registry`, which takes them in.

Times here are so short that the loop, if it waits at all, waits for no more than a turn, or so long that they never
come: what happens when they do is for the tests of each operator, on virtual time.
"""

from __future__ import annotations

from reactive_aio import Flow
from tests.registry import failed, operator, wide

AT_ONCE = 1e-6
NEVER = 1e6

# -- recovering

operator("timeout", lambda flow: flow.timeout(NEVER))
wide(
    "timeout",
    lambda n, via, _: via(via(Flow.never()).timeout(AT_ONCE, via(Flow.range(n)))),
    lambda _, via, __: via(via(Flow.never()).timeout(AT_ONCE, failed(via))),
    variant="fallback",
    ends_late=True,
    recovers=True,
)
