"""The subscription arbiter: carries demand and cancellation from one source over to the next.

The idea is David Karnok's, from his posts on the arbitration of ``java.util.concurrent.Flow``. There it is a
queue-drain over five atomic variables. Here all state is confined to one event loop, and a handful of straight lines
are left. They are re-entrant all the same: any call may come from inside any other, since a publisher may deliver from
within ``request``. Hence one rule, kept in every method: the state is complete before anybody else is called.

Invariants, whenever no method is on the stack:

- the demand that the current source has from us and has not met equals ``requested``;
- between two sources demand only gathers, in ``requested``, and the next source is asked for all of it, once;
- after ``cancel`` there is no current source, and every one that still arrives is cancelled.
"""

from __future__ import annotations

from attrs import define, field

from ..spec import UNBOUNDED, Subscription, add_demand


@define(eq=False)
class SubscriptionArbiter:
    """The one Subscription of downstream, in front of one source after another."""

    requested: int = field(init=False, default=0)
    """Demand not yet met."""
    cancelled: bool = field(init=False, default=False)
    _current: Subscription | None = field(init=False, default=None)

    def request(self, n: int) -> None:
        """Pass demand to the current source; between sources, keep it for the next."""
        if self.cancelled:
            return
        self.requested = add_demand(self.requested, n)
        if self._current is not None:
            self._current.request(n)

    def cancel(self) -> None:
        """Cancel the current source, and every one to come."""
        self.cancelled = True
        self.leave()

    def leave(self) -> None:
        """Cancel the current source in favour of the next, which gets the unmet demand."""
        current, self._current = self._current, None
        if current is not None:
            current.cancel()

    def switch_to(self, subscription: Subscription) -> None:
        """Make ``subscription`` the current one and request the outstanding demand from it."""
        if self.cancelled:
            subscription.cancel()
            return
        self._current = subscription
        if self.requested:
            subscription.request(self.requested)

    def produced(self, n: int) -> None:
        """Count elements that the current source has delivered, before they are passed on."""
        requested = self.requested
        if requested != UNBOUNDED:  # as `subtract_demand`, without its call
            self.requested = requested - n if requested > n else 0

    def ended(self) -> None:
        """Note that the current source has ended, so that demand gathers until the next."""
        self._current = None
