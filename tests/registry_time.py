"""The entries of what looks at the clock; see `tests.registry`, which takes them in.

Times here are short or long. A short one lets the loop wait for no more than a turn. A long one never passes. The
tests of each operator use virtual time, and test what happens when a time has passed.
"""

from __future__ import annotations

import asyncio

from reactive_aio import Backoff, Flow
from tests.registry import failed, flaky, operator, wide

AT_ONCE = 1e-9
NEVER = 1e6

# -- recovering

operator("timeout", lambda flow: flow.timeout(NEVER))
wide(
    "timeout",
    lambda n, via, _: via(via(Flow.never()).timeout(AT_ONCE, fallback=via(Flow.range(n)))),
    lambda _, via, __: via(via(Flow.never()).timeout(AT_ONCE, fallback=failed(via))),
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
    "retry",
    lambda n, via, _: via(flaky()(n, via).retry(Backoff(0.0, max_retries=9))),
    lambda _, via, __: via(failed(via).retry(Backoff(AT_ONCE, max_retries=1))),
    variant="backoff",
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


def beside(pair: tuple[float, object]) -> object:
    """Return the element that stands beside a time."""
    return pair[1]


# -- timing

operator("delay", lambda flow: flow.delay(AT_ONCE))
operator("delay_subscription", lambda flow: flow.delay_subscription(AT_ONCE))
operator("rate_limit", lambda flow: flow.rate_limit(2, AT_ONCE))
operator("timestamp", lambda flow: flow.timestamp().map(beside))
operator("elapsed", lambda flow: flow.elapsed().map(beside))
# These give fewer elements, and how many is a matter of time: here it is one, with the end or at once.
wide(
    "debounce",
    lambda n, via, _: via(via(via(Flow.of("last")).debounce(NEVER)).repeat(n)),
    lambda _, via, __: via(failed(via).debounce(NEVER)),
)
wide(
    "sample",
    lambda n, via, _: via(via(via(Flow.of("last")).sample(NEVER)).repeat(n)),
    lambda _, via, __: via(failed(via).sample(NEVER)),
)
wide(
    "throttle_first",
    lambda n, via, _: via(via(via(Flow.of("first")).throttle_first(NEVER)).repeat(n)),
    lambda _, via, __: via(failed(via).throttle_first(NEVER)),
)

# -- windowing

wide(
    "group_by_key",
    lambda n, via, _: via(
        via(Flow.range(n))
        .group_by_key(lambda _: "key")
        .join(via(Flow.of("other")).group_by_key(lambda _: "key"), within=NEVER)
    ),
    lambda _, via, __: via(via(Flow.never()).group_by_key(abs).join(failed(via).group_by_key(abs), within=NEVER)),
    variant="join-within",
    mixes=True,
)

wide(
    "buffer_timeout",
    lambda n, via, _: via(via(Flow.range(2 * n)).buffer_timeout(2, NEVER)),
    lambda _, via, __: via(failed(via).buffer_timeout(2, NEVER)),
)
