"""The table of places has every parameter by which a user's code comes into a flow, and every two options of the matrix meet."""

from __future__ import annotations

import inspect
import re
from itertools import product

from reactive_aio import Flow
from tests.failures.ends import ENDS, PLACEMENTS
from tests.failures.kinds import ALL_KINDS
from tests.failures.places import NO_PLACE, PLACES
from tests.failures.test_matrix import mixed

USERS = re.compile(r"Callable|Awaitable|Iterable|Publisher\b|Subscriber\b|Stage\b|Random\b|ContextManager")
"""The types of parameters that are a user's code, which may raise."""


def parameters_that_take_code() -> set[str]:
    found: set[str] = set()
    for name in dir(Flow):
        method = inspect.getattr_static(Flow, name)
        function = getattr(method, "__func__", method)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name != "self" and USERS.search(str(parameter.annotation)):
                found.add(f"{name}.{parameter.name}")
    return found


def test_every_parameter_that_takes_a_users_code_is_a_place_of_the_matrix() -> None:
    entered = {f"{place.method}.{re.split('[ ,]', place.parameter)[0]}" for place in PLACES}

    assert set() == parameters_that_take_code() - entered - set(NO_PLACE), "enter it in tests/failures/places.py"


def test_what_has_no_place_is_there() -> None:
    assert set() == set(NO_PLACE) - parameters_that_take_code()


def test_the_places_can_be_told_apart() -> None:
    names = [str(place) for place in PLACES]

    assert sorted(set(names)) == sorted(names)


def test_every_kind_meets_every_end_and_every_placement() -> None:
    cells = list(mixed([place for place in PLACES if place.build is not None], list(ENDS), "plain"))
    kinds = [kind.name for kind in ALL_KINDS]

    assert set(product(kinds, ENDS)) == {(cell.kind.name, cell.end) for cell in cells}
    assert set(product(kinds, PLACEMENTS)) == {(cell.kind.name, cell.placement) for cell in cells}
    assert set(product(ENDS, PLACEMENTS)) == {(cell.end, cell.placement) for cell in cells}
