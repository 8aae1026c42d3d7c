"""How arguments are shown in plans and in the notes of errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from traceback import walk_stack
from types import FrameType
from typing import Any

import pytest

from reactive_aio import Backoff, Flow
from reactive_aio._core.guard import brief
from reactive_aio._core.redacting import redacted
from reactive_aio._fusion import label
from reactive_aio._plan import PublishOn, SubscribeOn
from reactive_aio.schedulers import current


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x" * 32, "'" + "x" * 32 + "'"), ("x" * 33, "'" + "x" * 30 + "...")],
    ids=["34 characters", "35 characters"],
)
def test_a_long_value_is_cut_to_34_characters(text: str, shown: str) -> None:
    assert label(text) == shown
    assert len(shown) == 34


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("https://example.org:8443", "https://example.org:8443"),
        ("https://ann:secret@example.org/a", "https://example.org/a"),
        ("https://ann:sec@ret@example.org/a", "https://example.org/a"),
        ("https://secret@example.org", "https://example.org"),
        ("https://example.org/a?token=secret&b=1", "https://example.org/a?..."),
        ("https://example.org#secret", "https://example.org?..."),
        ("https://ann:secret@[::1]:80/a?secret", "https://[::1]:80/a?..."),
        ("WSS://ann:secret@example.org", "WSS://example.org"),
        ("https://ann:sec/ret@example.org", "https://..."),
        ("https://ann:secret", "https://..."),
        ("no URL: user:name@example.org?", "no URL: user:name@example.org?"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown == redacted(url)
    assert f"from {shown} to {shown}" == redacted(f"from {url} to {url}")


def test_a_url_is_without_secrets_before_it_is_cut() -> None:
    url = "https://ann:secret@example.org/a"
    assert ["'https://example.org/a'", "['https://example.org/a']"] == [label(url), label([url])]
    assert "'https://example.org/a?..." == label(url + "?token=secret")
    assert "b'https://example.org/a'" == label(url.encode())
    assert "OSError: no answer of https://example.org/a" == brief(OSError(f"no answer of {url}"))


def test_what_can_be_called_is_shown_by_its_name() -> None:
    assert (label(len), label(str), label(partial(len))) == ("len", "str", "partial(len)")


def test_what_has_no_text_of_its_own_is_shown_by_its_type() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError("silent")

    assert (label(object()), label(Silent())) == ("object", "Silent")


class Outcome(BaseException):
    """An exception outside of `Exception`."""


@pytest.mark.parametrize("error", [ValueError, Outcome, GeneratorExit])
async def test_a_repr_that_raises_anything_hides_no_failure(error: type[BaseException]) -> None:
    class Silent:
        def __repr__(self) -> str:
            raise error

    class Called(Silent):
        @property
        def __name__(self) -> str:
            raise error

        def __call__(self, n: int) -> float:
            return 1 / n

    silent: Any = Silent()
    assert ("Silent", "Called") == (label(silent), label(Called()))
    with pytest.raises(ZeroDivisionError) as failed:
        await Flow.of(silent).map(lambda _: 1 / 0).to_list()
    assert "of(Silent)" in failed.value.__notes__[0]
    with pytest.raises(TypeError, match=r"take\(n=Silent\)"):
        Flow.of(1).take(silent)


SECRET: Any = "pass" + "word"

SHOWING: dict[str, Callable[[], Any]] = {
    "of": lambda: Flow.of(SECRET).describe(),
    "from_iterable": lambda: Flow.from_iterable([SECRET]).describe(),
    "start_with": lambda: Flow.empty().start_with(SECRET).describe("line"),
    "default_if_empty": lambda: repr(Flow.empty().default_if_empty(SECRET)),
    "generate": lambda: Flow.generate(lambda _: None, SECRET).describe(),
    "merge": lambda: Flow.of(1).merge(Flow.of(SECRET)).describe(),
    "timeout": lambda: Flow.of(1).timeout(1.0, fallback=Flow.of(SECRET)).diagram(),
    "scan": lambda: Flow.of(1).scan(lambda text, _: text, SECRET).describe(),
    "retry by a Backoff": lambda: Flow.of(SECRET).retry(Backoff(0.1, max_retries=1)).describe(),
    "a wrong argument": lambda: Flow.of(1).take(SECRET),
    "a note": lambda: Flow.of(SECRET).map(lambda _: 1 // 0).run_sync(),
    "a step of generate": lambda: Flow.generate(lambda state: state, SECRET).run_sync(),
    "one key too many": lambda: Flow.of(1, SECRET).group_by(lambda key: key, max_groups=1).run_sync(),
    "one different key too many": lambda: Flow.of(1, SECRET).distinct(max_keys=1).run_sync(),
    "one()": lambda: Flow.of(SECRET, SECRET).run_sync(Flow.one),
    "an answer": lambda: Flow.error(OSError()).retry_when(lambda *_: SECRET).run_sync(),
}


def told_by(show: Callable[[], Any]) -> str:
    """Return the text of a plan, or of the error that there is instead, with its notes."""
    try:
        return str(show())
    except Exception as error:
        return "\n".join([str(error), *getattr(error, "__notes__", [])])


@pytest.mark.parametrize("off", ["0", "False"])
@pytest.mark.parametrize("where", SHOWING)
def test_elements_and_arguments_are_left_out_where_the_environment_says_so(
    where: str, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTIVE_AIO_SHOW_ELEMENTS", off)
    told = told_by(SHOWING[where])

    assert SECRET not in told
    assert told


@pytest.mark.parametrize("shown", ["1", ""])
def test_elements_are_shown_cut_short_otherwise(shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTIVE_AIO_SHOW_ELEMENTS", shown)

    assert "of('password')" in told_by(SHOWING["a note"])
    assert "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." in repr(Flow.of("x" * 10**6))


def test_functions_and_types_are_named_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTIVE_AIO_SHOW_ELEMENTS", "0")

    assert "Flow.of(str, int).map(len)" == repr(Flow.of(SECRET, 7).map(len))
    assert "Flow.range(int, int)" == repr(Flow.range(10))


def test_a_range_is_shown_by_its_arguments() -> None:
    assert ["Flow.range(0, 9)", "Flow.range(9, 0, -1)"] == [repr(Flow.range(9)), repr(Flow.range(9, 0, -1))]


def test_boundaries_are_shown_with_their_scheduler() -> None:
    assert str(SubscribeOn(current())) == "subscribe_on(current())"
    assert str(PublishOn(current(), 4)) == "publish_on(current(), prefetch=4)"


@pytest.mark.parametrize("nest", [Flow.merge, Flow.zip], ids=["merge", "zip"])
def test_a_flow_that_holds_others_by_the_million_is_shown_at_once(
    nest: Callable[[Flow[int], Flow[int]], Flow[Any]],
) -> None:
    flow = Flow.of(1)
    for _ in range(30):
        flow = nest(flow, flow)
    name = nest.__name__
    start = f"Flow.{name}(" * 5
    assert repr(flow) == f"Flow.{name}({start[:31]}..., {start[:31]}...)"


def test_flows_in_a_flow_are_shown_as_far_as_there_is_room_for_them() -> None:
    short = Flow.zip(Flow.of(1), Flow.of(2))
    assert label(short) == "Flow.zip(Flow.of(1), Flow.of(2))"
    assert label(Flow.zip(short, short)) == "Flow.zip(Flow.zip(Flow.of(1), F..."
    assert label(Flow.from_async_iterable(short)) == "Flow.from_async_iterable(Flow.z..."


def test_a_failing_repr_takes_no_room_from_later_labels() -> None:
    class Failing:
        def __repr__(self) -> str:
            raise OSError

    assert [label(Flow.of(Failing())) for _ in range(3)] == ["Flow.of(Failing)"] * 3


def test_a_flow_nested_to_the_limit_of_recursion_is_shown_by_few_frames() -> None:
    flow = Flow.of(1)
    for _ in range(2_000):
        flow = Flow.from_async_iterable(flow)
    deepest = 0

    def measured(frame: FrameType, *_: object) -> None:
        nonlocal deepest
        deepest = max(deepest, sum(1 for _ in walk_stack(frame)))

    before = sum(1 for _ in walk_stack(None))
    sys.setprofile(measured)
    repr(flow)
    sys.setprofile(None)
    assert deepest - before < 100
