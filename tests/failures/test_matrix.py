"""Whatever a user's code raises ends the flow and arrives, wherever it is raised and whatever it is.

``MATRIX=all`` runs the whole product, which takes the better part of an hour. Otherwise each place meets each kind
twice. The second time it also has an end, a placement and a loop. These are drawn so that every two of them meet.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, TypeVar

import pytest

from tests.conftest import LOOPS
from tests.failures.cells import PlaceCell
from tests.failures.ends import EARLY, ENDS, PLACEMENTS
from tests.failures.kinds import ALL_KINDS
from tests.failures.places import PLACES, Place
from tests.failures.running import WHOLE, none_go_wrong

T = TypeVar("T")
Part = tuple[str, str, str] | None
"""A placement, a loop and an end to combine with everything, in less time than a test may take. None draws some."""
PARTS: Final[list[Part]] = list(product(PLACEMENTS, LOOPS, ENDS)) if WHOLE else [None]
in_parts = pytest.mark.parametrize("part", PARTS, ids=lambda part: "-".join(part) if part is not None else "chosen")


def none_wrong(cells: Iterable[PlaceCell]) -> None:
    """Run the cells that make sense, and fail with the names of those that went wrong."""
    none_go_wrong([cell for cell in cells if cell.makes_sense])


def rotated(options: Sequence[T], times: int, rng: random.Random) -> list[T]:
    """Return a number of options, by chance, each as often as any other."""
    given: list[T] = []
    while len(given) < times:
        given += rng.sample(options, len(options))
    return given[:times]


def mixed(places: Iterable[Place], ends: Sequence[str], situation: str, part: Part = None) -> Iterator[PlaceCell]:
    """Yield every place with every kind, with a random end, placement and loop. A part has all of them."""
    rng = random.Random(situation)
    for place in places:
        if part is not None:
            placement, loop, end = part
            if end in (ends if place.build is not None else ["to_list"]):
                yield from (PlaceCell(place, kind, end, placement, situation, loop) for kind in ALL_KINDS)
            continue
        some = rotated(ends, len(ALL_KINDS), rng), rotated(list(PLACEMENTS), len(ALL_KINDS), rng)
        for kind, end, placement in zip(ALL_KINDS, *some, strict=True):
            yield PlaceCell(place, kind, end, placement, situation, rng.choice(list(LOOPS)))


CLEANUPS: Final = [place for place in PLACES if place.cleanup and place.hears == "end"]
WHOLE_READ: Final = [end for end in ENDS if end not in EARLY]
WAITING: Final = [end for end in ENDS if end not in EARLY and end != "run_sync"]


@pytest.mark.costly
def test_every_kind_arrives_from_every_place() -> None:
    none_wrong(PlaceCell(place, kind) for place in PLACES if not place.early for kind in ALL_KINDS)


@pytest.mark.costly
@in_parts
def test_every_kind_arrives_from_every_place_at_every_end_and_over_every_boundary(part: Part) -> None:
    none_wrong(mixed([place for place in PLACES if not place.cleanup], list(ENDS), "plain", part))
    none_wrong(mixed([place for place in CLEANUPS if not place.early], WHOLE_READ, "plain", part))


def test_an_exception_of_cleanup_arrives_where_the_flow_is_left_early() -> None:
    none_wrong(PlaceCell(place, kind, situation="early") for place in CLEANUPS for kind in ALL_KINDS)


@in_parts
def test_an_exception_of_cleanup_arrives_at_every_end_and_over_every_boundary(part: Part) -> None:
    none_wrong(mixed(CLEANUPS, WHOLE_READ, "early", part))


@in_parts
def test_an_exception_of_cleanup_arrives_at_an_end_that_leaves_the_flow(part: Part) -> None:
    none_wrong(mixed(CLEANUPS, sorted(EARLY), "left", part))


def test_an_exception_of_cleanup_behind_a_failure_is_noted_and_told_to_the_hook() -> None:
    none_wrong(PlaceCell(place, kind, situation="failing") for place in CLEANUPS for kind in ALL_KINDS)


@in_parts
def test_an_exception_of_cleanup_behind_a_failure_is_reported_once_at_every_end_and_over_every_boundary(
    part: Part,
) -> None:
    none_wrong(mixed(CLEANUPS, list(ENDS), "failing", part))


def test_an_exception_of_cleanup_behind_a_cancel_goes_to_the_hook() -> None:
    places = [place for place in PLACES if place.cleanup and place.build is not None]
    none_wrong(PlaceCell(place, kind, situation="cancel") for place in places for kind in ALL_KINDS)


@in_parts
def test_an_exception_of_cleanup_behind_a_cancel_is_reported_at_every_end_and_over_every_boundary(part: Part) -> None:
    none_wrong(mixed([place for place in PLACES if place.cleanup], WAITING, "cancel", part))


@pytest.mark.costly
def test_every_end_that_waits_can_be_cancelled() -> None:
    """No kind matters here: nothing raises; so the places are run with each end once, and with each placement."""
    rng = random.Random("cancel")
    kind = ALL_KINDS[0]
    cells: list[PlaceCell] = []
    for place in (place for place in PLACES if place.method != "run_sync"):  # it blocks, as it says
        for end, placement in zip(WAITING, rotated(list(PLACEMENTS), len(WAITING), rng), strict=True):
            if not place.cleanup and (place.build is not None or end == "to_list"):
                cells.append(PlaceCell(place, kind, end, placement, "cancel", rng.choice(list(LOOPS))))
    none_wrong(cells)
