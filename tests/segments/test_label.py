"""How arguments are shown in plans and in the notes of errors."""

from __future__ import annotations

from functools import partial

import pytest

from reactive_aio.schedulers import current
from reactive_aio.segments import PublishOn, SubscribeOn, label


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x" * 32, "'" + "x" * 32 + "'"), ("x" * 33, "'" + "x" * 30 + "...")],
    ids=["34 characters", "35 characters"],
)
def test_a_long_value_is_cut_to_34_characters(text: str, shown: str) -> None:
    assert label(text) == shown
    assert len(shown) == 34


def test_what_can_be_called_is_shown_by_its_name() -> None:
    assert (label(len), label(str), label(partial(len))) == ("len", "str", "partial")


def test_what_has_no_text_of_its_own_is_shown_by_its_type() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError("silent")

    assert (label(object()), label(Silent())) == ("object", "Silent")


def test_boundaries_are_shown_with_their_scheduler() -> None:
    assert str(SubscribeOn(current())) == "subscribe_on(current())"
    assert str(PublishOn(current(), 4)) == "publish_on(current(), prefetch=4)"
