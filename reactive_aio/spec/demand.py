"""The arithmetic of demand, in one place.

Demand is a count of elements. It saturates at ``UNBOUNDED``, and never decreases again
(rule 3.17): Python's integers do not overflow, so the bound is kept by hand.
"""

from __future__ import annotations

import sys
from typing import Final

from .._core.guard import shown
from .rules import quote

UNBOUNDED: Final = 2**63 - 1

MOST_AT_ONCE: Final = min(UNBOUNDED, sys.maxsize)
"""The largest count that Python's own containers and ``islice`` take: on a machine of 32 bits, as in a browser, it is less."""


def add_demand(demand: int, n: int) -> int:
    """Return the sum of two demands, ``UNBOUNDED`` at most (rules 3.8 and 3.17).

    >>> add_demand(2, 3)
    5
    >>> add_demand(UNBOUNDED, 1) == UNBOUNDED
    True
    """
    total = demand + n
    if total < UNBOUNDED:  # a third of the time of `min`
        return total
    return UNBOUNDED


def subtract_demand(demand: int, n: int) -> int:
    """Return the demand that is left after ``n`` elements, at least zero. Unbounded demand stays unbounded.

    >>> subtract_demand(5, 3)
    2
    >>> subtract_demand(1, 3)
    0
    >>> subtract_demand(UNBOUNDED, 3) == UNBOUNDED
    True
    """
    return demand if demand == UNBOUNDED else demand - n if demand > n else 0


def bounded(n: int) -> int:
    """Return a computed number as a demand: at most ``UNBOUNDED``.

    >>> bounded(3 * UNBOUNDED) == UNBOUNDED
    True
    """
    return min(n, UNBOUNDED)


def quarter(prefetch: int) -> int:
    """Return a quarter of a prefetch: the number that is requested or handed out at a time, to keep others busy.

    >>> quarter(256)
    64
    """
    return prefetch >> 2


def refill_after(prefetch: int) -> int:
    """Return how many elements of a prefetch are consumed before the same number is requested again: three quarters.

    >>> refill_after(256), refill_after(1)
    (192, 1)
    """
    return prefetch - quarter(prefetch)


def demand_error(n: object) -> Exception | None:
    """Return the error of ``request(n)``, or None if it is valid (rule 3.9).

    The error is signalled by ``on_error``, not raised: ``request`` returns normally (rule 3.16).

    >>> demand_error(1)
    >>> demand_error(0)
    ValueError('request(0): §3.9 demand must be a positive number of elements')
    """
    if not isinstance(n, int) or isinstance(n, bool):
        return TypeError(f"request({shown(n)}): {quote('3.9')}, not {type(n).__name__}")
    if n <= 0:
        return ValueError(f"request({n}): {quote('3.9')}")
    return None
