"""The entries of what looks at the clock; see `tests.registry`, which takes them in.

Times here are so short that the loop, if it waits at all, waits for no more than a turn, or so long that they never
come: what happens when they do is for the tests of each operator, on virtual time.
"""

from __future__ import annotations

import asyncio

from reactive_aio import Flow
from tests.registry import failed, flaky, operator, wide

AT_ONCE = 1e-9
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


async def yes(*_: object) -> bool:
    """Say in a later turn that there is to be another subscription."""
    await asyncio.sleep(0)
    return True


async def no(*_: object) -> bool:
    """Say that there is to be none."""
    return False


wide(
    "retry_backoff",
    lambda n, via, _: via(flaky()(n, via).retry_backoff(9, 0.0)),
    lambda _, via, __: via(failed(via).retry_backoff(1, AT_ONCE)),
    recovers=True,
)
wide(
    "retry_when",
    lambda n, via, _: via(flaky()(n, via).retry_when(yes)),
    lambda _, via, __: via(failed(via).retry_when(no)),
    recovers=True,
)
wide(
    "repeat_when",
    lambda n, via, _: via(via(via(Flow.of("again")).repeat_when(yes)).take(n)),
    lambda _, via, __: via(failed(via).repeat_when(yes)),
)
