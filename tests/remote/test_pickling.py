"""How elements are pickled: large ones as they are, by reference where the other side can import what is meant."""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import pytest

from reactive_aio._remote import pickling
from reactive_aio._remote.pickling import ByReference, NotImportableError, dumps, dumps_in_pieces


class Plain:
    pass


def plain() -> None:
    pass


@pytest.fixture
def interactive(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make the main module one that no other process can import, with a class and a function."""
    main = ModuleType("__main__")
    main.Own = type("Own", (), {"__module__": "__main__"})  # type: ignore[attr-defined]
    main.own = FunctionType(plain.__code__, {"__name__": "__main__"}, "own")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    return main


@pytest.fixture
def by_value(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Have what is pickled by value recorded."""
    seen: list[object] = []

    def record(value: object, **_: Any) -> bytes:
        seen.append(value)
        return b"by value"

    monkeypatch.setattr(pickling, "by_value_dumps", lambda: record)
    return seen


def test_large_bytes_are_not_copied_wherever_they_are() -> None:
    first, second = bytes(100_000), bytes(70_000)

    pieces = dumps_in_pieces([1, first, {"deep": (second,)}])

    assert [True, True] == [any(piece is each for piece in pieces) for each in (first, second)]
    assert [1, first, {"deep": (second,)}] == pickle.loads(b"".join(pieces))


def test_what_may_change_before_it_is_sent_is_copied() -> None:
    memory = bytearray(100_000)
    pieces = dumps_in_pieces([memory])
    memory[:] = b"x" * 50_000  # nobody holds it, so it may shrink, too

    assert [bytes(100_000)] == pickle.loads(b"".join(pieces))


def test_small_elements_are_one_piece() -> None:
    assert 1 == len(dumps_in_pieces([*range(1_000)]))


@pytest.mark.parametrize(
    "of",
    [lambda main: main.Own, lambda main: main.Own(), lambda main: main.own, lambda main: [{"deep": (main.Own(),)}]],
    ids=["class", "object", "function", "deep"],
)
def test_what_is_of_an_interactive_session_travels_by_value(
    of: Callable[[Any], object], interactive: ModuleType, by_value: list[object]
) -> None:
    value = of(interactive)

    assert b"by value" == dumps(value)
    assert [value] == by_value


def test_what_only_has_the_name_of_the_main_module_in_its_text_does_not(
    interactive: ModuleType, by_value: list[object]
) -> None:
    value = ["__main__", b"__main__", Plain]

    assert value == pickle.loads(dumps(value))
    assert [] == by_value


def test_all_goes_by_reference_where_the_main_module_can_be_imported(by_value: list[object]) -> None:
    assert Plain is pickle.loads(dumps(Plain))
    assert [] == by_value


def test_somebodys_own_reducers_are_used_beside_those_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setitem(copyreg.dispatch_table, Plain, lambda value: "plain")
    monkeypatch.setattr(sys.modules[__name__], "plain", Plain(), raising=False)

    assert plain is pickle.loads(dumps(plain, []))


def test_values_that_are_pickled_one_after_another_are_pickles_of_their_own(interactive: ModuleType) -> None:
    pickled = ByReference(lambda kind: False)
    shared = ["shared"]

    first, second = pickled((shared, shared)), pickled((1, shared))
    with pytest.raises(NotImportableError):
        pickled([shared, interactive.Own()])
    third = pickled((2, shared, Plain))

    assert (["shared"], ["shared"]) == pickle.loads(first)
    assert (1, ["shared"]) == pickle.loads(second)
    assert (2, ["shared"], Plain) == pickle.loads(third)


def test_classes_of_the_main_module_that_the_other_side_has_are_named(interactive: ModuleType) -> None:
    pickled = ByReference(lambda kind: kind is interactive.Own)

    assert interactive.Own is pickle.loads(pickled(interactive.Own))
    with pytest.raises(NotImportableError):
        pickled(interactive.own)
