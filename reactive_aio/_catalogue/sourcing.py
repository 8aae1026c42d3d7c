"""Sources."""

from __future__ import annotations

from typing import Final

from .traits import Completes, Fails, Traits

TRAITS: Final[dict[str, Traits]] = {
    "of": Traits("", fails=Fails.NONE, completes=Completes.ITSELF, names="aiostream: ``just``"),
    "from_iterable": Traits(
        "", fails=Fails.NONE, completes=Completes.ITSELF, names="RxPY: ``from_iterable``; aiostream: ``iterate``"
    ),
    "range": Traits(
        "",
        fails=Fails.NONE,
        completes=Completes.ITSELF,
        names="RxPY: ``range``; aiostream: ``range``",
    ),
    "empty": Traits("", fails=Fails.NONE, completes=Completes.ITSELF, names="RxPY: ``empty``; aiostream: ``empty``"),
    "never": Traits("", fails=Fails.NONE, completes=Completes.NEVER, names="RxPY: ``never``; aiostream: ``never``"),
    "error": Traits("", fails=Fails.NONE, completes=Completes.NEVER, names="aiostream: ``throw``"),
    "defer": Traits(names="RxPY: ``defer``"),
    "from_async_iterable": Traits(
        "", fails=Fails.NONE, completes=Completes.ITSELF, names="RxPY: ``from_async_iterable``"
    ),
    "create": Traits("", fails=Fails.NONE, completes=Completes.ITSELF, names="RxPY: ``create``"),
    "from_callback": Traits(
        "", fails=Fails.NONE, keeps="max_size", completes=Completes.BEHIND, names="RxPY: ``from_callback``"
    ),
    "from_poll": Traits("", fails=Fails.NONE, completes=Completes.ITSELF),
    "from_blocking": Traits("", fails=Fails.NONE, completes=Completes.ITSELF),
    "interval": Traits("", fails=Fails.NONE, completes=Completes.NEVER),
    "from_publisher": Traits("d"),
    "from_awaitable": Traits(
        "", fails=Fails.NONE, completes=Completes.ITSELF, names="Mutiny: ``createFrom.completionStage``"
    ),
    "from_callable": Traits(
        "", fails=Fails.NONE, completes=Completes.ITSELF, names="Mutiny: ``createFrom.item``; aiostream: ``call``"
    ),
    "generate": Traits("", fails=Fails.NONE, completes=Completes.ITSELF, names="Mutiny: ``createFrom.generator``"),
    "using": Traits(names="Mutiny: ``createFrom.resource``"),
    "timer": Traits("", fails=Fails.NONE, completes=Completes.ITSELF),
    "from_spark": Traits("", fails=Fails.NONE, keeps="prefetch", completes=Completes.BEHIND),
}
