"""The shape of a row of transforms by their classes, found out once, however often a region of such stages runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from attrs import frozen

from .stage import Transform

Kind = type[Transform[Any, Any]]


@frozen
class Shape:
    """The places of those transforms that define something.

    Most neither stop nor hold anything. The few that may are asked often.
    """

    kinds: tuple[Kind, ...]
    """The classes."""
    starting: tuple[int, ...]
    """The stages that may emit elements before any input."""
    stopping: tuple[int, ...]
    """Those that may come to need no more input."""
    holding: tuple[int, ...]
    """The stages that say whether they have an element to emit."""
    reticent: tuple[int, ...]
    """The stages that may emit more without saying so."""
    finishing: tuple[int, ...]
    """The stages that may emit elements after the input."""
    closing: tuple[int, ...]
    """The stages that hold something to let go of."""
    mute: bool
    """Whether nothing is passed on before the input has ended, so that a pass never waits for demand."""
    ends: bool
    """Whether, in addition, only the last stage adds elements after the input."""


@lru_cache(maxsize=512)
def shape_of(kinds: tuple[Kind, ...]) -> Shape:
    """Return the shape of a row of transforms of these classes."""
    last = kinds[-1].template if kinds else None
    mute, finishing = last is not None and last.mute, _defining(kinds, "finish")
    return Shape(
        kinds=kinds,
        starting=_defining(kinds, "prelude"),
        stopping=_defining(kinds, "done"),
        holding=_defining(kinds, "pending"),
        reticent=tuple(place for place, kind in enumerate(kinds) if _is_reticent(kind)),
        finishing=finishing,
        closing=_defining(kinds, "close"),
        mute=mute,
        ends=mute and finishing == (len(kinds) - 1,),
    )


def _defining(kinds: tuple[Kind, ...], name: str) -> tuple[int, ...]:
    return tuple(place for place, kind in enumerate(kinds) if _defines(kind, name))


def _defines(kind: Kind, name: str) -> bool:
    return getattr(kind, name) is not getattr(Transform, name)


def _is_reticent(kind: Kind) -> bool:
    if _defines(kind, "pending"):
        return False
    template = kind.template
    return template is None or not template.single or _defines(kind, "prelude") or _defines(kind, "finish")
