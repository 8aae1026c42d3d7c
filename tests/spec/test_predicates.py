"""The rules, each by traces that keep it and traces that break it, up to the edge between them."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from reactive_aio.spec import RULES, UNBOUNDED
from reactive_aio.spec.predicates import NEVER_SEEN, PREDICATES, violations
from reactive_aio.spec.trace import Trace
from tests.spec.telling import (
    NOBODY,
    Told,
    cancel,
    on_complete,
    on_error,
    on_next,
    on_subscribe,
    request,
    rest,
    subscribe,
    trace,
)

FAILED = OSError("failed")
REFUSED = TypeError("None")
UNASKED = ValueError("request(0)")


class NothingSpecial:
    def __repr__(self) -> str:
        return "None"


@frozen
class Case:
    rule: str
    what: str
    trace: Trace

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


def after_cancel(what: str, *told: Told, **facts: Any) -> Case:
    return Case("3.14", what, trace(on_subscribe(), cancel(), *told, **{"at_rest": True, **facts}))


def processing(rule: str, what: str, *told: Told, **facts: Any) -> Case:
    """Stream 1 goes into a processor, stream 2 comes out."""
    return Case(rule, what, trace(*told, **{"upstream": 1, "downstream": 2, "at_rest": True, **facts}))


ASKED_BY_ONE = [on_subscribe(request(1)), on_subscribe(stream=2)]
AFTER_CANCEL = ["3.6", "3.7", "3.12"]
QUIET = [on_subscribe(), rest()]

KEPT = [
    # -- a signal after cancel
    *(
        Case(rule, what, trace(on_subscribe(request(2)), *told, at_rest=True))
        for rule in AFTER_CANCEL
        for what, told in {
            "wanted": [on_next(), rest(), cancel(), on_next()],
            "under way": [on_next(), on_next(), cancel(), on_error(FAILED)],
            "no signal": [on_next(), on_next(), rest(), cancel(), rest()],
            "never cancelled": [on_next(), on_next(), rest(), on_complete()],
        }.items()
    ),
    # -- 1.1
    Case("1.1", "as much as was requested", trace(request(2), on_next(), on_next())),
    Case("1.1", "from inside request", trace(request(1, on_next()))),
    Case("1.1", "requested before the trace", trace(on_next(), requested_before=1)),
    Case("1.1", "requested and delivered before the trace", trace(on_next(), requested_before=3, delivered_before=2)),
    Case("1.1", "unbounded, and more", trace(request(UNBOUNDED), request(UNBOUNDED), on_next())),
    # -- 1.2
    Case("1.2", "no more was wanted", trace(on_subscribe(request(2)), on_next(), on_next(), elements=2, at_rest=True)),
    Case("1.2", "ended", trace(request(3), on_next(), on_complete(), elements=1, at_rest=True)),
    Case("1.2", "cancelled", trace(on_subscribe(request(3)), on_next(), cancel(), elements=1, at_rest=True)),
    Case("1.2", "still under way", trace(request(3), on_next(), elements=1)),
    Case("1.2", "nobody knows how many", trace(request(3), on_next(), at_rest=True)),
    Case("1.2", "no elements", trace(on_subscribe(), request(3), elements=0, at_rest=True)),
    Case("1.2", "elements are missing", trace(request(3), on_next(), elements=2, at_rest=True)),
    # -- 1.3
    Case("1.3", "one after another on two threads", trace(on_next(), on_next(thread=2), on_complete())),
    Case("1.3", "from inside request", trace(on_subscribe(request(1, on_next(request(1, on_next())))))),
    Case("1.3", "another stream", trace(on_next("a", on_next("b", stream=2)), on_next("c", stream=2))),
    # -- 1.4
    Case("1.4", "failed as expected", trace(on_subscribe(), on_error(FAILED), fails=True, at_rest=True)),
    processing(
        "1.4", "passed on", on_error(FAILED), on_error(FAILED, stream=2), on_error(FAILED, stream=3), fails=True
    ),
    processing("1.4", "failed before upstream", on_error(UNASKED, stream=2), on_error(FAILED), fails=True),
    Case("1.4", "cancelled", trace(on_subscribe(), cancel(), fails=True, at_rest=True)),
    Case("1.4", "still under way", trace(on_subscribe(), fails=True)),
    Case("1.4", "has no reason to fail", trace(on_subscribe(), at_rest=True)),
    # -- 1.5
    Case("1.5", "ended", trace(request(1), on_next(), on_complete(), request(1), elements=1, at_rest=True)),
    Case("1.5", "nothing more requested", trace(on_subscribe(request(1)), on_next(), elements=1, at_rest=True)),
    Case(
        "1.5",
        "another subscription cancelled",
        trace(on_subscribe(request(1)), on_next(), cancel(link=2), elements=1, at_rest=True),
    ),
    Case("1.5", "still under way", trace(request(1), on_next(), request(1), elements=1)),
    Case("1.5", "failed as expected", trace(on_error(FAILED), elements=1, fails=True)),
    Case("1.5", "failed for a wrong demand", trace(request(1), request(0), on_error(UNASKED), elements=1)),
    Case("1.5", "failed, and nobody knows the elements", trace(on_error(FAILED))),
    Case(
        "1.5", "cancelled", trace(on_subscribe(request(1)), on_next(), cancel(), request(1), elements=1, at_rest=True)
    ),
    # -- 1.6
    Case("1.6", "nothing after the end", trace(on_complete(), request(1), cancel(), released=True)),
    Case("1.6", "unasked after the end, which is another rule", trace(on_complete(), on_next(), request(1))),
    Case("1.6", "unasked after the end, and again", trace(on_complete(), on_next(), on_next())),
    Case("1.6", "cancelled before", trace(on_subscribe(), cancel(), on_complete(), request(1), on_next())),
    Case("1.6", "not over, so not released", trace(on_subscribe(), on_next(), released=False)),
    Case("1.6", "nobody knows whether it was released", trace(on_complete())),
    # -- 1.7
    Case("1.7", "nothing after the end", trace(on_next(), on_complete(), cancel())),
    Case("1.7", "the end goes on after a request, which is another rule", trace(on_complete(), request(1), on_next())),
    Case("1.7", "no end", trace(on_next(), on_next())),
    Case("1.7", "subscribed to once more", trace(on_complete(), subscribe())),
    # -- 1.8
    Case("1.8", "an element was under way", trace(on_subscribe(), cancel(), on_next(), rest())),
    Case("1.8", "asked again", trace(on_subscribe(), cancel(), rest(), request(1), on_complete())),
    Case("1.8", "asked again for elements", trace(on_subscribe(), cancel(), rest(), request(1), on_next())),
    Case("1.8", "not cancelled", trace(on_subscribe(), rest(), on_next(), on_complete())),
    Case(
        "1.8",
        "another subscription cancelled",
        trace(on_subscribe(), on_subscribe(link=2), cancel(link=2), on_complete()),
    ),
    # -- 1.9
    Case("1.9", "a subscription first", trace(subscribe("s", on_subscribe()), on_next(), at_rest=True)),
    Case("1.9", "None is refused", trace(subscribe(NOBODY, raises=REFUSED), at_rest=True)),
    Case("1.9", "still under way", trace(subscribe("s"))),
    Case("1.9", "nothing at all", trace(request(1))),
    # -- 1.10
    Case(
        "1.10",
        "two subscribers",
        trace(subscribe("s", on_subscribe()), subscribe("t", on_subscribe(stream=2), stream=2), at_rest=True),
    ),
    Case("1.10", "twice on purpose", trace(subscribe("s"), subscribe("s", stream=2), provoked=True)),
    Case("1.10", "one that heard nothing, which is another rule", trace(subscribe("s"), at_rest=True)),
    Case("1.10", "the second is still under way", trace(subscribe("s", on_subscribe()), subscribe("t", stream=2))),
    Case(
        "1.10",
        "each got its own",
        trace(*ASKED_BY_ONE, request(1, stream=2), on_next(), on_next(stream=2), at_rest=True),
    ),
    Case("1.10", "one too many, and nobody waits", trace(*ASKED_BY_ONE, on_next(), on_next(stream=2), at_rest=True)),
    Case(
        "1.10",
        "one waits, and none too many",
        trace(*ASKED_BY_ONE, request(1, stream=2), on_next(stream=2), at_rest=True),
    ),
    Case("1.10", "one waits, and is over", trace(*ASKED_BY_ONE, on_complete(), on_next(stream=2), at_rest=True)),
    Case("1.10", "one was given another's, still under way", trace(*ASKED_BY_ONE, on_next(stream=2))),
    # -- 1.11
    Case("1.11", "each on its own", trace(on_next(1), on_next(2, stream=2))),
    Case("1.11", "the same", trace(on_next(1), on_next(1, stream=2), multicast=True, at_rest=True)),
    Case(
        "1.11",
        "as far as was requested",
        trace(
            request(2), request(1, stream=2), on_next(1), on_next(2), on_next(1, stream=2), multicast=True, at_rest=True
        ),
    ),
    Case("1.11", "still under way", trace(request(1), request(1, stream=2), on_next(1), multicast=True)),
    Case(
        "1.11",
        "one was cancelled",
        trace(
            *(on_subscribe(stream=n, link=n) for n in (1, 2)),
            *(cancel(stream=2, link=2), on_next(1)),
            multicast=True,
            at_rest=True,
        ),
    ),
    Case(
        "1.11",
        "the first was cancelled",
        trace(
            *(on_subscribe(stream=n, link=n) for n in (1, 2)),
            *(cancel(), on_next(1, stream=2)),
            multicast=True,
            at_rest=True,
        ),
    ),
    Case("1.11", "both fail", trace(on_error(FAILED), on_error(FAILED, stream=2), multicast=True, fails=True)),
    Case("1.11", "both end", trace(on_complete(), on_complete(stream=2), multicast=True, at_rest=True)),
    Case(
        "1.11", "the first failed, which is another rule", trace(on_error(FAILED), on_next(1, stream=2), multicast=True)
    ),
    Case("1.11", "nobody there", trace(multicast=True)),
    # -- 2.1
    Case("2.1", "requested", trace(on_subscribe(request(1)), at_rest=True)),
    Case("2.1", "cancelled", trace(on_subscribe(cancel()), at_rest=True)),
    Case("2.1", "over", trace(on_subscribe(), on_complete(), at_rest=True)),
    Case("2.1", "still under way", trace(on_subscribe())),
    Case("2.1", "not subscribed", trace(subscribe(), at_rest=True)),
    # -- 2.2, 3.4 and 3.5
    Case("2.2", "quick", trace(on_next(seconds=0.5), budget=0.5)),
    Case("2.2", "interrupted once", trace(on_next(seconds=2), on_next(), budget=0.5)),
    Case("2.2", "no elements", trace(request(1, seconds=1))),
    Case("2.2", "not over yet", trace(on_next(lasts=True, seconds=1))),
    Case("3.4", "quick", trace(request(1, seconds=0.5), cancel(seconds=2), budget=0.5)),
    Case("3.5", "quick", trace(cancel(seconds=0.5), request(1, seconds=2), budget=0.5)),
    Case("3.5", "raised at home, which is another rule", trace(on_subscribe(), cancel(raises=FAILED))),
    # -- 2.3
    Case("2.3", "from elements", trace(on_subscribe(request(1)), on_next(1, request(1), cancel()))),
    Case("2.3", "after the end, which is another rule", trace(on_complete(), cancel())),
    Case("2.3", "of another stream", trace(on_complete(cancel(stream=2, link=2)))),
    # -- 2.4
    Case("2.4", "before the end", trace(on_subscribe(request(1)), on_complete())),
    Case("2.4", "inside the end, which is another rule", trace(on_subscribe(), on_complete(cancel()))),
    Case("2.4", "another subscription", trace(on_subscribe(), on_complete(), cancel(link=2))),
    Case("2.4", "no end", trace(on_subscribe(), request(1))),
    # -- 2.5
    Case("2.5", "cancelled the second", trace(on_subscribe(), on_subscribe(cancel(link=2), link=2), at_rest=True)),
    Case("2.5", "still under way", trace(on_subscribe(), on_subscribe(link=2))),
    Case(
        "2.5",
        "cancelled the first as well, later",
        trace(on_subscribe(), on_subscribe(cancel(link=2), link=2), cancel(), at_rest=True),
    ),
    Case("2.5", "requested from the first", trace(on_subscribe(), on_subscribe(cancel(link=2), request(1), link=2))),
    Case("2.5", "only one", trace(on_subscribe(request(1)), at_rest=True)),
    # -- 2.6
    Case("2.6", "cancelled", trace(on_subscribe(), cancel(), done=True, at_rest=True)),
    Case("2.6", "over", trace(on_subscribe(), on_complete(), done=True, at_rest=True)),
    Case("2.6", "needs more", trace(on_subscribe(), at_rest=True)),
    Case("2.6", "still under way", trace(on_subscribe(), done=True)),
    Case("2.6", "not subscribed", trace(subscribe(), done=True, at_rest=True)),
    # -- 2.7
    Case("2.7", "one after another on two threads", trace(request(1), request(1, thread=2), cancel())),
    Case("2.7", "one inside another", trace(request(1, on_next(1, request(1))))),
    # -- 2.8
    Case("2.8", "raised before, which is another rule", trace(on_subscribe(), on_next(raises=FAILED), cancel())),
    Case("2.8", "raised by the end", trace(on_subscribe(), cancel(), on_complete(raises=FAILED))),
    Case("2.8", "taken", trace(on_subscribe(), cancel(), on_next())),
    # -- 2.9 and 2.10
    Case("2.9", "taken", trace(on_subscribe(), on_complete())),
    Case("2.9", "after cancel", trace(on_subscribe(), cancel(), on_complete(raises=FAILED))),
    Case("2.10", "taken", trace(on_subscribe(), on_error(FAILED))),
    Case("2.10", "after cancel", trace(on_subscribe(), cancel(), on_error(FAILED, raises=FAILED))),
    Case("2.10", "None refused", trace(on_subscribe(), on_error(None, raises=REFUSED))),
    # -- 2.12
    Case("2.12", "once", trace(on_subscribe())),
    Case("2.12", "twice on purpose", trace(on_subscribe(), on_subscribe(link=2), provoked=True)),
    # -- 2.13
    Case("2.13", "all in order", trace(on_subscribe(), on_next(0), on_error(FAILED))),
    Case("2.13", "an element that is shown as None", trace(on_subscribe(), on_next(NothingSpecial()))),
    Case("2.13", "None refused", trace(on_next(None, raises=REFUSED), provoked=True)),
    Case("2.13", "raised after cancel", trace(on_subscribe(), cancel(), on_next(raises=FAILED))),
    Case("2.13", "raised by the end, which is another rule", trace(on_error(FAILED, raises=FAILED))),
    Case("2.13", "raised when provoked", trace(on_next(raises=FAILED), provoked=True)),
    # -- 3.1
    Case("3.1", "at home", trace(on_subscribe(loop=2), request(1, loop=2), cancel(loop=2))),
    Case("3.1", "cancelled elsewhere", trace(on_subscribe(), request(1), cancel(loop=2), cancel(loop=None))),
    Case("3.1", "without a loop", trace(on_subscribe(loop=None), request(1, loop=2))),
    # -- 3.2
    Case("3.2", "met", trace(on_subscribe(request(1)), on_next(1, request(1)), on_next(), elements=3, at_rest=True)),
    Case("3.2", "elements used up", trace(on_subscribe(request(5)), on_next(), elements=1, at_rest=True)),
    Case("3.2", "from elsewhere too", trace(on_subscribe(request(1)), request(1, raises=FAILED), at_rest=True)),
    Case("3.2", "raised elsewhere", trace(request(1, raises=FAILED), elements=1, at_rest=True)),
    Case("3.2", "raised, and from elsewhere too", trace(on_subscribe(request(1, raises=FAILED)), request(1))),
    Case("3.2", "requested before the trace", trace(on_subscribe(), elements=1, at_rest=True, requested_before=1)),
    Case("3.2", "cancelled", trace(on_subscribe(request(1)), cancel(), elements=1, at_rest=True)),
    Case("3.2", "still under way", trace(on_subscribe(request(1)), elements=1)),
    Case("3.2", "nobody knows how many", trace(on_subscribe(request(1)), at_rest=True)),
    Case(
        "3.2",
        "met before the trace",
        trace(on_subscribe(request(1)), elements=5, at_rest=True, requested_before=2, delivered_before=3),
    ),
    # -- 3.3
    Case("3.3", "flat", trace(on_next(), on_next())),
    Case("3.3", "from inside request", trace(request(1, on_next()))),
    Case("3.3", "as deep as allowed", trace(on_next(1, request(1, on_next())), depth=2)),
    Case("3.3", "of another stream", trace(on_next(1, on_next(2, stream=2)))),
    # -- 3.6
    Case("3.6", "nothing", trace(on_subscribe(), cancel(), rest(), request(1), rest())),
    Case("3.6", "under way", trace(on_subscribe(), cancel(), request(1), on_next())),
    Case("3.6", "before the request", trace(on_subscribe(), cancel(), rest(), on_next(), request(1))),
    Case("3.6", "nothing requested", trace(on_subscribe(), cancel(), rest(), on_next(), on_next())),
    Case(
        "3.6", "requested before the rest", trace(on_subscribe(), cancel(), request(1), rest(), request(1), on_next())
    ),
    Case("3.6", "before cancel", trace(on_subscribe(), request(1, raises=FAILED), cancel())),
    Case("3.6", "not cancelled", trace(on_subscribe(), rest(), request(1, raises=FAILED), on_next())),
    # -- 3.7
    Case("3.7", "nothing", trace(on_subscribe(), cancel(), rest(), cancel(), rest())),
    Case("3.7", "under way", trace(on_subscribe(), cancel(), cancel(), on_next())),
    Case("3.7", "before", trace(on_subscribe(), cancel(), rest(), on_next(), cancel())),
    Case(
        "3.7", "cancelled again before the rest", trace(on_subscribe(), cancel(), cancel(), rest(), cancel(), on_next())
    ),
    Case("3.7", "the first raised, which is another rule", trace(on_subscribe(), cancel(raises=FAILED))),
    Case("3.7", "raised elsewhere", trace(on_subscribe(), cancel(), cancel(thread=2, raises=FAILED))),
    Case("3.7", "another subscription", trace(on_subscribe(), cancel(), cancel(link=2, raises=FAILED))),
    # -- 3.8
    Case("3.8", "added up", trace(request(1), request(1), on_next(), on_next(), elements=3, at_rest=True, asked=2)),
    Case("3.8", "still under way", trace(request(1), asked=2)),
    Case("3.8", "one request", trace(request(2), on_next(), elements=3, at_rest=True)),
    Case("3.8", "raised before the second", trace(request(1), on_next(raises=FAILED), request(1))),
    # -- 3.9
    Case("3.9", "in order", trace(request(1), at_rest=True)),
    Case("3.9", "answered", trace(request(0), on_error(UNASKED), at_rest=True)),
    Case("3.9", "answered, and failed then", trace(request(0), on_error(UNASKED), on_error(FAILED), at_rest=True)),
    Case("3.9", "a wrong type answered", trace(request("1"), on_error(REFUSED), at_rest=True)),
    Case("3.9", "still under way", trace(request(0))),
    Case("3.9", "cancelled", trace(on_subscribe(), cancel(), request(0), at_rest=True)),
    Case("3.9", "over", trace(on_complete(), request(0), at_rest=True)),
    # -- 3.10 and 3.11
    Case("3.10", "not from inside request", trace(request(1), on_next(raises=FAILED))),
    Case("3.10", "taken", trace(request(1, on_next()))),
    Case("3.11", "not from inside request", trace(request(1), on_complete(raises=FAILED))),
    Case("3.11", "taken", trace(request(1, on_complete()))),
    # -- 3.12
    Case(
        "3.12",
        "one was spared",
        trace(on_subscribe(request(4)), on_next(), cancel(), on_next(), on_next(), elements=4, at_rest=True),
    ),
    Case("3.12", "all had come", trace(on_subscribe(request(1)), on_next(), cancel(), elements=4, at_rest=True)),
    Case("3.12", "still under way", trace(on_subscribe(request(1)), cancel(), on_next(), elements=4)),
    Case("3.12", "nobody knows how many", trace(on_subscribe(request(1)), cancel(), on_next(), at_rest=True)),
    Case("3.12", "not cancelled", trace(on_subscribe(request(1)), on_next(), elements=1, at_rest=True)),
    # -- 3.13
    Case("3.13", "forgotten", trace(on_subscribe(), cancel(), released=True)),
    Case("3.13", "nobody knows", trace(on_subscribe(), cancel())),
    Case("3.13", "not cancelled", trace(on_subscribe(), released=False)),
    # -- 3.14
    after_cancel("started anew", on_subscribe(request(1, stream=2), stream=2), on_next(stream=2)),
    after_cancel("ended", on_subscribe(request(1, stream=2), stream=2), on_complete(stream=2)),
    after_cancel("nothing requested", on_subscribe(stream=2)),
    after_cancel("needs no more", subscribe(stream=2), done=True),
    after_cancel("still under way", subscribe(stream=2), at_rest=False),
    after_cancel("raised from inside a request", request(1, on_complete(raises=FAILED))),
    after_cancel("an element raised", on_next(raises=FAILED)),
    Case("3.14", "begun before", trace(on_subscribe(), subscribe(stream=2), cancel(), at_rest=True)),
    Case(
        "3.14",
        "begun before, and requested after",
        trace(on_subscribe(), on_subscribe(stream=2), cancel(), request(1, stream=2), at_rest=True),
    ),
    Case("3.14", "not cancelled", trace(on_subscribe(), subscribe(stream=2), on_complete(raises=FAILED), at_rest=True)),
    # -- 3.15
    Case("3.15", "the second raised, which is another rule", trace(on_subscribe(), cancel(), cancel(raises=FAILED))),
    Case("3.15", "raised elsewhere", trace(on_subscribe(), cancel(thread=2, raises=FAILED))),
    # -- 3.16
    Case("3.16", "after cancel", trace(on_subscribe(), cancel(), request(1, raises=FAILED))),
    Case("3.16", "after the end", trace(on_subscribe(), on_complete(), request(1, raises=FAILED))),
    Case(
        "3.16",
        "between the end and cancel",
        trace(on_subscribe(), on_complete(), request(1, raises=FAILED), cancel()),
    ),
    # -- 3.17
    Case("3.17", "met", trace(request(UNBOUNDED), on_next(), elements=1, at_rest=True)),
    Case("3.17", "failed as expected", trace(request(UNBOUNDED), on_error(FAILED), fails=True)),
    Case("3.17", "bounded", trace(request(UNBOUNDED // 2 - 1), on_error(FAILED))),
    Case("3.17", "no demand at all", trace(request(UNBOUNDED - 0.5), on_error(FAILED))),
    # -- 4.1 and 4.2
    processing("4.1", "passed on", request(1, stream=2), request(1)),
    processing("4.1", "asked on", request(2, stream=2), request(1), on_next(), on_next(stream=2), request(1)),
    processing("4.1", "nobody waits", request(1, stream=2), request(1), on_next(), on_next(stream=2)),
    processing("4.1", "upstream is over", request(1, stream=2), on_complete()),
    processing("4.1", "downstream is over", request(1, stream=2), on_complete(stream=2)),
    processing("4.1", "upstream is cancelled", request(1, stream=2), on_subscribe(), cancel()),
    processing("4.1", "downstream is cancelled", on_subscribe(stream=2), request(1, stream=2), cancel(stream=2)),
    processing("4.1", "still under way", request(1, stream=2), at_rest=False),
    processing("4.1", "no processor", request(1, stream=2), upstream=None),
    processing("4.1", "nothing behind it", request(1, stream=2), downstream=None),
    processing("4.2", "passed on", on_error(FAILED), on_error(FAILED, stream=2)),
    processing("4.2", "failed before upstream", on_error(UNASKED, stream=2), on_error(FAILED)),
    processing("4.2", "recovered from", on_error(FAILED), on_next(stream=2)),
    processing("4.2", "recovered from, and failed again", on_error(FAILED), on_next(stream=2), on_error(FAILED)),
    processing("4.2", "cancelled", on_subscribe(stream=2), cancel(stream=2), on_error(FAILED)),
    processing("4.2", "no failure", on_complete()),
    processing("4.2", "still under way", on_error(FAILED), at_rest=False),
    processing("4.2", "no processor", on_error(FAILED), upstream=None),
    processing("4.2", "nothing behind it", on_error(FAILED), downstream=None),
]

BROKEN = [
    # -- a signal after cancel
    *(
        Case(rule, what, trace(on_subscribe(request(1)), on_next(), *told, at_rest=True))
        for rule in AFTER_CANCEL
        for what, told in {
            "an element that nobody wanted": [rest(), cancel(), on_next()],
            "a failure": [rest(), cancel(), on_error(FAILED)],
            "an end, at last": [rest(), cancel(), rest(), on_complete()],
        }.items()
    ),
    *(
        Case(rule, "met before the trace", trace(*QUIET, cancel(), on_next(), requested_before=2, delivered_before=2))
        for rule in AFTER_CANCEL
    ),
    Case("1.1", "one more than requested", trace(request(2), on_next(), on_next(), on_next())),
    Case("1.1", "requested afterwards", trace(on_next(), request(1))),
    Case("1.1", "requested by what is no demand", trace(request(0), request(True), request("9"), on_next())),
    Case("1.1", "met before the trace", trace(on_next(), requested_before=2, delivered_before=2)),
    Case("1.2", "all elements and no end", trace(request(3), on_next(), on_next(), elements=2, at_rest=True)),
    Case("1.2", "more elements and no end", trace(request(3), on_next(), on_next(), elements=1, at_rest=True)),
    Case(
        "1.2",
        "more requested along the way",
        trace(on_subscribe(request(2)), on_next(), request(1), on_next(), elements=2, at_rest=True),
    ),
    Case("1.3", "on two threads", trace(on_next(1), on_next(2, on_next(3, thread=2)))),
    Case("1.3", "during a call that lasts", trace(on_next(1, on_next(2, thread=2), lasts=True))),
    Case("1.3", "from inside another", trace(on_next(1, on_next(2)))),
    Case("1.3", "an end from inside", trace(on_subscribe(on_complete()))),
    Case("1.4", "nothing came", trace(on_subscribe(), fails=True, at_rest=True)),
    processing("1.4", "altered", on_error(FAILED), on_error(FAILED, stream=2), on_error(REFUSED, stream=3), fails=True),
    Case("1.5", "asked once more", trace(request(1), on_next(), request(1), elements=1, at_rest=True)),
    Case("1.5", "failed", trace(request(1), on_error(FAILED), elements=1)),
    Case("1.6", "request had an effect", trace(on_complete(), request(1), on_next())),
    Case("1.6", "cancel had an effect", trace(on_subscribe(), on_error(FAILED), cancel(), on_complete())),
    Case(
        "1.6",
        "request had an effect before cancel",
        trace(on_subscribe(), on_complete(), request(1), on_next(), cancel()),
    ),
    Case("1.6", "not released", trace(on_complete(), released=False)),
    Case("1.6", "request raised", trace(on_subscribe(), on_complete(), request(1, raises=FAILED))),
    Case("1.7", "an element", trace(on_complete(), on_next())),
    Case("1.7", "another end", trace(on_error(FAILED), on_complete())),
    Case("1.8", "an end after cancel", trace(on_subscribe(), cancel(), on_complete())),
    Case("1.8", "an end after cancel and request", trace(on_subscribe(), cancel(), request(1), on_complete())),
    Case("1.8", "an element after the rest", trace(on_subscribe(), cancel(), rest(), on_next())),
    Case("1.9", "None is taken", trace(subscribe(NOBODY))),
    Case("1.9", "None raises something else", trace(subscribe(NOBODY, raises=FAILED))),
    Case("1.9", "raised", trace(subscribe("s", raises=REFUSED))),
    Case("1.9", "not answered", trace(subscribe("s"), at_rest=True)),
    Case("1.9", "an element first", trace(on_next(), on_subscribe())),
    Case(
        "1.10",
        "the same twice",
        trace(subscribe("s", on_subscribe()), subscribe("s", on_subscribe(stream=2), stream=2)),
    ),
    Case(
        "1.10",
        "the second heard nothing",
        trace(subscribe("s", on_subscribe()), subscribe("t", stream=2), at_rest=True),
    ),
    Case("1.10", "one was given another's", trace(*ASKED_BY_ONE, on_next(stream=2), at_rest=True)),
    Case("1.11", "different elements", trace(on_next(1), on_next(2, stream=2), multicast=True)),
    Case("1.11", "the third differs", trace(on_next(1), on_next(1, stream=2), on_next(3, stream=3), multicast=True)),
    Case(
        "1.11",
        "one is behind",
        trace(request(1), request(1, stream=2), on_next(1), multicast=True, at_rest=True),
    ),
    Case(
        "1.11",
        "one has not ended",
        trace(request(1), request(1, stream=2), on_complete(), multicast=True, at_rest=True),
    ),
    Case("1.11", "the second was rejected", trace(on_next(1), on_error(FAILED, stream=2), multicast=True)),
    Case("2.1", "nothing requested", trace(on_subscribe(), at_rest=True)),
    Case("2.1", "nothing that is a demand", trace(on_subscribe(request(0)), at_rest=True)),
    Case("2.2", "slow", trace(on_next(seconds=0.6), on_next(seconds=0.7), budget=0.5)),
    Case("3.4", "slow", trace(request(1, seconds=0.6), budget=0.5)),
    Case("3.5", "slow", trace(cancel(seconds=0.6), cancel(seconds=0.6, stream=2), budget=0.5)),
    Case("3.5", "raised on another thread", trace(on_subscribe(), cancel(thread=2, raises=FAILED))),
    Case("2.3", "cancelled in the end", trace(on_subscribe(), on_complete(cancel()))),
    Case("2.3", "requested in the failure", trace(on_subscribe(), request(1), on_error(FAILED, request(1)))),
    Case("2.4", "requested afterwards", trace(on_subscribe(), on_complete(), request(1))),
    Case("2.4", "cancelled afterwards", trace(on_subscribe(), on_error(FAILED), cancel())),
    Case("2.5", "requested from the second", trace(on_subscribe(), on_subscribe(request(1, link=2), link=2))),
    Case("2.5", "did not cancel it", trace(on_subscribe(), on_subscribe(link=2), at_rest=True)),
    Case(
        "2.5",
        "did not cancel the third",
        trace(on_subscribe(), on_subscribe(link=2), on_subscribe(link=3), at_rest=True),
    ),
    Case("2.5", "cancelled the first", trace(on_subscribe(), on_subscribe(cancel(), cancel(link=2), link=2))),
    Case("2.6", "did not cancel", trace(on_subscribe(), done=True, at_rest=True)),
    Case("2.7", "at once on two threads", trace(cancel(), request(1, request(1, thread=2)))),
    Case("2.7", "cancelled during a request", trace(request(1, cancel(thread=2)))),
    Case("2.8", "raised", trace(on_subscribe(), cancel(), on_next(raises=FAILED))),
    Case("2.9", "raised", trace(on_subscribe(), on_complete(raises=FAILED))),
    Case("2.9", "raised, and cancelled then", trace(on_subscribe(), on_complete(raises=FAILED), cancel())),
    Case("2.10", "raised", trace(on_subscribe(), on_error(FAILED, raises=FAILED))),
    Case("2.12", "twice", trace(on_subscribe(), on_subscribe(link=2))),
    Case("2.13", "an element is None", trace(on_next(None))),
    Case("2.13", "an error is None, and refused", trace(on_error(None, raises=REFUSED))),
    Case("2.13", "an error is None", trace(on_next(1), on_error(None))),
    Case("2.13", "a subscription is None", trace(on_subscribe(value=NOBODY))),
    Case("2.13", "None taken", trace(on_next(None), provoked=True)),
    Case("2.13", "None answered otherwise", trace(on_next(None, raises=FAILED), provoked=True)),
    Case("2.13", "raised", trace(on_subscribe(), on_next(raises=FAILED))),
    Case("2.13", "raised, and cancelled then", trace(on_subscribe(), on_next(raises=FAILED), cancel())),
    Case("2.13", "raised at the start", trace(on_subscribe(raises=FAILED))),
    Case("3.1", "requested elsewhere", trace(on_subscribe(), request(1, loop=2))),
    Case("3.2", "not met", trace(on_subscribe(request(2)), on_next(), elements=2, at_rest=True)),
    Case("3.2", "raised", trace(on_subscribe(request(1, raises=FAILED)))),
    Case("3.3", "one inside another", trace(on_next(1, request(1, on_next(2))))),
    Case("3.3", "deeper than allowed", trace(on_next(1, request(1, on_next(2, request(1, on_next(3))))), depth=2)),
    Case("3.6", "an element after all", trace(on_subscribe(), cancel(), rest(), request(1), on_next())),
    Case("3.6", "requested once more", trace(on_subscribe(), cancel(), rest(), request(1), on_next(), request(1))),
    Case("3.6", "raised", trace(on_subscribe(), cancel(), request(1, raises=FAILED))),
    Case("3.7", "an end after all", trace(on_subscribe(), cancel(), rest(), cancel(), on_complete())),
    Case("3.7", "cancelled once more", trace(on_subscribe(), cancel(), rest(), cancel(), on_next(), cancel())),
    Case("3.7", "raised", trace(on_subscribe(), cancel(), cancel(raises=FAILED))),
    Case("3.8", "replaced", trace(request(1), request(1), on_next(), elements=3, at_rest=True)),
    Case("3.8", "less than asked for", trace(request(1), asked=2, at_rest=True)),
    Case("3.8", "raised", trace(request(1), request(1), on_next(raises=FAILED))),
    Case("3.9", "not answered", trace(request(1), request(0), at_rest=True)),
    Case("3.9", "answered by something else", trace(request(-1), on_error(FAILED), at_rest=True)),
    Case("3.9", "answered by something else, still under way", trace(request(-1), on_error(FAILED))),
    Case("3.10", "raised", trace(request(1, on_next(raises=FAILED)))),
    Case("3.11", "raised", trace(request(1, on_complete(raises=FAILED)))),
    Case("3.11", "the failure raised", trace(request(1, on_error(FAILED, raises=FAILED)))),
    Case(
        "3.12",
        "all came",
        trace(on_subscribe(request(3)), on_next(), cancel(), on_next(), on_next(), elements=4, at_rest=True),
    ),
    Case(
        "3.12",
        "the last came, whatever was requested afterwards",
        trace(on_subscribe(request(9)), on_next(), cancel(), on_next(), request(1), elements=2, at_rest=True),
    ),
    Case("3.13", "kept", trace(on_subscribe(), cancel(), released=False)),
    Case("3.14", "heard nothing", trace(on_subscribe(), cancel(), subscribe(stream=2), at_rest=True)),
    Case(
        "3.14",
        "no elements and no end",
        trace(on_subscribe(), cancel(), on_subscribe(request(1, stream=2), stream=2), at_rest=True),
    ),
    Case("3.14", "an end raised", trace(on_subscribe(), cancel(), on_complete(raises=FAILED))),
    Case("3.15", "raised", trace(on_subscribe(), cancel(raises=FAILED))),
    Case("3.16", "raised", trace(on_subscribe(), request(1, raises=FAILED))),
    Case("3.16", "raised before the end", trace(on_subscribe(), request(1, raises=FAILED), on_complete())),
    Case("3.16", "raised before cancel", trace(on_subscribe(), request(1, raises=FAILED), cancel())),
    Case("3.17", "failed", trace(request(UNBOUNDED // 2), on_error(FAILED))),
    Case("3.17", "failed after more", trace(request(1), request(UNBOUNDED), request(1), on_error(FAILED))),
    Case("3.17", "raised", trace(request(UNBOUNDED, raises=FAILED))),
    Case("3.17", "not met", trace(request(UNBOUNDED), on_next(), elements=2, at_rest=True)),
    processing("4.1", "not passed on", request(1, stream=2)),
    processing("4.1", "not asked on", request(2, stream=2), request(1), on_next()),
    processing("4.2", "swallowed", on_error(FAILED)),
    processing("4.2", "altered", on_error(FAILED), on_error(OSError("failed"), stream=2)),
    processing("4.2", "swallowed after an element", on_next(stream=2), on_error(FAILED)),
]


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_a_rule_is_kept(case: Case) -> None:
    assert PREDICATES[case.rule](case.trace) is None


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_a_rule_is_broken(case: Case) -> None:
    (violation,) = violations(case.trace, [case.rule])

    assert violation.rule == case.rule
    assert violation.trace is case.trace
    assert violation.seen


def test_every_rule_has_traces_on_both_sides() -> None:
    seen = set(RULES) - set(NEVER_SEEN)

    assert seen == set(PREDICATES)
    assert seen - {case.rule for case in BROKEN} == set()
    assert seen - {case.rule for case in KEPT} == set()


def test_violations_come_in_the_order_of_the_rules() -> None:
    broken = trace(on_next(None), on_complete(), on_complete())

    assert [each.rule for each in violations(broken)] == ["1.1", "1.7", "1.9", "2.13"]
    assert [each.rule for each in violations(broken, ["2.13", "2.11", "2.12", "1.1"])] == ["2.13", "1.1"]


def test_what_came_in_place_of_a_failure_is_told() -> None:
    (nothing,) = violations(trace(on_subscribe(), fails=True, at_rest=True), ["1.4"])
    (raised,) = violations(trace(on_subscribe(), request(1, raises=FAILED), fails=True, at_rest=True), ["1.4"])

    assert "nothing came in its place" in nothing.seen
    assert "request raised OSError('failed') instead (#2)" in raised.seen


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        (trace(on_next(None), provoked=True), "on_next(None) did not raise TypeError but returned"),
        (trace(on_next(None, raises=FAILED), provoked=True), "but raised OSError('failed')"),
    ],
)
def test_how_a_call_ended_is_reported(told: Trace, seen: str) -> None:
    (violation,) = violations(told, ["2.13"])

    assert seen in violation.seen


def test_the_quickest_of_slow_calls_is_told() -> None:
    (slow,) = violations(trace(on_next(seconds=0.75), on_next(seconds=0.25), on_next(seconds=1)), ["2.2"])

    assert slow.seen == "the quickest of 3 calls of on_next took 250 ms"


def test_the_nearest_signal_around_a_call_is_the_one_that_counts() -> None:
    (violation,) = violations(trace(on_error(FAILED, on_complete(cancel()))), ["2.3"])

    assert violation.seen == "cancel (#2) from inside on_complete (#1)"


def test_a_violation_says_what_the_rule_is_what_was_seen_and_what_to_do() -> None:
    told = trace(on_next("a"))
    (violation,) = violations(told, ["1.1"])

    assert str(violation) == (
        "§1.1 a publisher signals no more elements than its subscriber has requested\n"
        "  seen: 1 elements for a demand of 0 (#0)\n"
        "  what to do: count what was requested and what was delivered per subscription, and stop at equality\n"
        f"  the signals around it:\n{told.excerpt()}"
    )
