"""Messages look at the beginning of an element, and show of it what the whole repr begins with."""

from __future__ import annotations

import random
import tracemalloc
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pytest

from reactive_aio import Flow
from reactive_aio._core.beginning import MOST, beginning, redacted_beginning
from reactive_aio._core.guard import shown
from reactive_aio._core.redacting import redacted
from reactive_aio._fusion import label
from reactive_aio.errors import EmptyFlowError


class Shown:
    """Counts how often it is shown."""

    times = 0

    def __repr__(self) -> str:
        Shown.times += 1
        return "one"


class Own(list[int]):
    def __repr__(self) -> str:
        return "own" * MOST


MANY: Final = 20_000
COLLECTIONS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "list": lambda items: items,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "dict": lambda items: dict(enumerate(items)),
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda items: dict(enumerate(items)).items(),
    "in others": lambda items: {"a": [(1, items)]},
    "many small ones": lambda items: [[each] for each in items],
}


@pytest.mark.parametrize("made", COLLECTIONS.values(), ids=COLLECTIONS)
@pytest.mark.parametrize("show", [label, shown], ids=["label", "shown"])
def test_of_many_elements_only_the_first_are_shown(
    show: Callable[[object], str], made: Callable[[list[Any]], Any]
) -> None:
    value = made([Shown() for _ in range(MANY)])
    Shown.times = 0
    text = show(value)

    assert text.endswith("...")
    assert repr(value).startswith(text[:-3])
    assert Shown.times < MANY + MOST  # those of the line before are all of them


@pytest.mark.parametrize(
    "value", [bytes(10**6), "é" * 10**6, bytearray(10**6), [bytes(10**6)]], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("show", [label, shown], ids=["label", "shown"])
def test_a_long_text_takes_no_memory_to_be_shown(show: Callable[[object], str], value: object) -> None:
    show(value)
    tracemalloc.start()
    try:
        text = show(value)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert repr(value).startswith(text[:-3])
    assert most < 100_000


def test_plans_notes_and_messages_look_at_the_first_elements() -> None:
    items = [Shown() for _ in range(MANY)]
    flow = Flow.from_iterable(items)
    Shown.times = 0
    repr(flow)
    flow.describe()
    with pytest.raises(EmptyFlowError) as of_source:
        flow.ignore_elements().run_sync(Flow.single)
    with pytest.raises(ZeroDivisionError) as of_element:
        Flow.of(items).map(lambda _: 1 // 0).run_sync()

    assert "[one, one, one, " in str(of_source.value)
    assert "[one, one, one, " in str(of_element.value.__notes__)
    assert Shown.times < MANY


# -- what is shown


TEXTS: Final = "ab'\"\n\x00é€𝄞 \\/:"
LEAVES: Final[tuple[Callable[[random.Random, int], Any], ...]] = (
    lambda chance, n: chance.randrange(-(10 ** (n + 1)), 10**40),
    lambda chance, n: "".join(chance.choices(TEXTS, k=3 * n)),
    lambda chance, n: bytes(chance.choices(b"ab'\"\n\x00\xff\\ ", k=3 * n)),
    lambda chance, n: bytearray(chance.choices(b"a'\"", k=n)),
    lambda chance, n: chance.choice([None, True, 1.5, 10**4000, range(n)]),
    lambda chance, n: "x " * n + "https://ann:secret@example.org/a?b=c",
    lambda chance, n: {chance.random() for _ in range(n)},
    lambda chance, n: frozenset("".join(chance.choices(TEXTS, k=5)) for _ in range(n)),
    lambda chance, n: Own(),
)
NESTS: Final[tuple[Callable[[list[Any]], Any], ...]] = (
    list,
    tuple,
    deque,
    lambda items: {str(each)[:9] + str(at): each for at, each in enumerate(items)},
    lambda items: dict(enumerate(items)).keys(),
    lambda items: dict(enumerate(items)).values(),
    lambda items: dict(enumerate(items)).items(),
    lambda items: items.append([items]) or items,  # it is in itself
)


def made_by(chance: random.Random, depth: int) -> Any:
    """Make a value, small or large, of parts that are smaller."""
    large = depth > 0 and chance.random() < 0.05
    count = chance.randrange(3_000 if large else 6)
    if not depth or chance.random() < 0.4:
        return chance.choice(LEAVES)(chance, count)
    return chance.choice(NESTS)([made_by(chance, 0 if large else depth - 1) for _ in range(count)])


@pytest.mark.parametrize("seed", range(3))
def test_a_beginning_is_that_of_the_repr_and_all_of_a_short_one(seed: int) -> None:
    chance = random.Random(seed)
    cut = 0
    for _ in range(200):
        value = made_by(chance, 4)
        whole, text = repr(value), beginning(value)
        if text != whole:
            cut += 1
            assert (MOST + 3, "...") == (len(text), text[-3:])
            assert len(whole) > MOST
            assert whole.startswith(text[:-3])
        assert redacted(whole)[:80] == redacted_beginning(value)[:80]
    assert cut > 10


def test_short_values_are_shown_by_their_own_repr() -> None:
    class Holder:
        def __init__(self, held: list[Any]) -> None:
            self.held = held

        def __repr__(self) -> str:
            return f"Holder({self.held})"

    items: list[Any] = []
    items.append(Holder(items))
    bounded = deque([items], 3)

    assert ["[Holder([...])]", "deque([[Holder([...])]], maxlen=3)"] == [beginning(items), beginning(bounded)]


def test_values_of_other_types_are_shown_by_their_own_repr() -> None:
    assert "own" * MOST == beginning(Own())
    assert "own" * 10 + "o..." == label(Own([1]))


def test_a_number_with_too_many_digits_is_shown_by_its_type() -> None:
    assert ["int", "list"] == [label(10**5000), label([10**5000])]


def test_collections_hundreds_deep() -> None:
    deep: list[Any] = [1] * MOST
    for _ in range(300):
        deep = [deep]

    assert "[" * 31 + "..." == label(deep)


def test_a_url_whose_end_is_not_looked_at_shows_no_secret() -> None:
    url = "https://ann:secret" + "x" * MOST + "@example.org/"

    assert ["'https://...", "['https://..."] == [label(url), label([url] * MOST)]
    assert "b'https://..." == label(url.encode() * 10)


def test_a_url_is_found_behind_a_long_word_by_reading_it_once() -> None:
    long = "a" * 10**6

    assert f"{long} 12https://example.org" == redacted(f"{long} 12https://ann:secret@example.org")
