"""The report of a failed expectation: demand, buffers, and the signals that arrived."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from .._runtime.driver import RegionDriver
from .._runtime.inputs import PushedInput
from ..spec import UNBOUNDED, add_demand


@frozen
class Event:
    """A signal that has arrived, and the time of the loop's clock."""

    kind: str
    value: Any = None
    at: float = field(default=0.0, eq=False)

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value!r}"
        return f"{self.kind}{value} at {self.at:g}"


def shown(n: int) -> str:
    """Return a demand in words.

    >>> shown(3), shown(UNBOUNDED)
    ('3', 'unbounded')
    """
    return "unbounded" if n >= UNBOUNDED else str(n)


def regions(subscription: object) -> list[str]:
    """Return a line for each region behind a subscription, from the last to the first, with its held elements.

    >>> regions(object())
    []
    """
    lines: list[str] = []
    while isinstance(subscription, RegionDriver):
        driver, subscription = subscription, None
        state = "ended" if driver.closed else "cancelled" if driver.cancelled else "running"
        # A look inside, for debugging: what was requested and is not wanted any more has been delivered.
        requested = add_demand(driver._demand, driver.delivered)  # pyright: ignore[reportPrivateUsage]
        line = f"region {state}: requested {shown(requested)}, delivered {driver.delivered}"
        source = driver._input  # pyright: ignore[reportPrivateUsage]
        if isinstance(source, PushedInput):
            line += f", buffered {source.buffered}, outstanding from upstream {shown(source.outstanding)}"
            subscription = source.upstream
        lines.append(line)
    return lines
