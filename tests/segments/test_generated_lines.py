"""The lines of generated functions, as tracebacks show them: they are kept for as long as the functions are."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from reactive_aio._fusion import Stage, writing
from reactive_aio._fusion import fuse as fusing
from reactive_aio._fusion.fuse import fuse
from reactive_aio.operators.filtering import Filter
from reactive_aio.operators.transforming import Map

AnyStage = Stage[int, int]


def kept() -> set[str]:
    """Return the files of generated functions whose lines are kept."""
    return {name for name in linecache.cache if name.startswith("<fused region")}


def fail(n: int) -> int:
    return 1 // 0


@pytest.fixture
def forgetting() -> Iterator[Callable[[], None]]:
    """Forget all generated functions that nobody holds, before and after."""

    def forget() -> None:
        for kept in (writing.generate, fusing._layout, fusing.gathering):  # pyright: ignore[reportPrivateUsage] - it is what is tested
            kept.cache_clear()

    forget()
    yield forget
    forget()


def test_they_go_with_the_functions(forgetting: Callable[[], None]) -> None:
    before = kept()
    for row in product((Map(abs), Filter(bool)), repeat=4):
        fuse(row)
    assert 16 == len(kept() - before)

    forgetting()
    assert set() == kept() - before


def test_a_failure_shows_the_line_that_raised_it_also_when_its_function_is_not_kept_any_more(
    forgetting: Callable[[], None],
) -> None:
    stages: tuple[AnyStage, ...] = (Map(abs), Map(fail))
    with pytest.raises(ZeroDivisionError) as failed:
        list(fuse(stages).unpaced(iter([1])))
    forgetting()

    assert "item = fn_1(item)" in "".join(traceback.format_exception(failed.value))


def test_functions_of_the_same_text_keep_their_lines_apart(forgetting: Callable[[], None]) -> None:
    first = fuse((Map(fail),))
    forgetting()
    second = fuse((Map(fail),))
    del first

    with pytest.raises(ZeroDivisionError) as failed:
        list(second.unpaced(iter([1])))
    assert "item = fn_0(item)" in "".join(traceback.format_exception(failed.value))
