"""Classes of the driver's main module, in the workers on both sides of a shuffle.

No worker can import such a class. So it travels by value, which takes a millisecond. That is little for a function or
for a chunk of elements, and too much for a shuffle, whose elements are pickled one by one. So the stages on both sides bring
the classes along, and a worker has them in its own main module. Its elements then refer to them by name.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from attrs import frozen

from ..._remote.pickling import MAIN

_BROUGHT: Final[dict[str, type[Any]]] = {}
"""Those in the main module of this worker, by name."""


@frozen
class MainClasses:
    """Classes that are in the main module of each process that unpickles this."""

    found: tuple[type[Any], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return bring, (self.found,)

    def has(self, kind: type[Any]) -> bool:
        """Return whether elements may name a class: it is one of these, and in the main module here.

        Another one may be there by an earlier task, and not where the elements are read.
        """
        return kind in self.found and _BROUGHT.get(kind.__qualname__) is kind


def bring(found: tuple[type[Any], ...]) -> MainClasses:
    """Put classes into the main module, but in place of nothing that is its own."""
    main = vars(sys.modules[MAIN])
    for each in found:
        name = each.__qualname__
        if name not in main or main[name] is _BROUGHT.get(name, MAIN):
            main[name] = _BROUGHT[name] = each
    return MainClasses(found)
