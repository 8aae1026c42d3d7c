"""An operator written outside of the library is one like any other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, assert_type

import pytest

from reactive_aio import UNBOUNDED, Flow, schedulers
from reactive_aio.spec import Publisher
from reactive_aio.tck import PublisherVerification
from tests.outside import stutter as module
from tests.outside.stutter import Stutter, stutter
from tests.subscribers import Recorder, idle

DOCS = Path(__file__).parents[2] / "docs" / "writing-an-operator.md"


def test_the_docs_begin_with_it() -> None:
    (first, *_) = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    source = Path(module.__file__).read_text().split('"""\n\n', 1)[1]

    assert first.startswith(source)


def test_it_is_chained_and_keeps_its_type() -> None:
    flow = Flow.of("a", "b").through(stutter(2)).map(str.upper)

    assert_type(flow, Flow[str])
    assert ["A", "A", "B", "B"] == flow.run_sync()


def test_it_is_shown_by_its_name_and_arguments() -> None:
    assert "map(str) -> stutter(2)" in Flow.range(3).map(str).then(Stutter(2)).describe()


async def test_it_reads_no_more_than_is_wanted() -> None:
    read: list[int] = []
    recorder = Recorder(3)
    Flow.range(9).do_on_next(read.append).through(stutter(2)).subscribe(recorder)
    await idle()

    assert [0, 0, 1] == recorder.items
    assert [0, 1] == read
    recorder.request(UNBOUNDED)
    await recorder.over.wait()
    assert 18 == len(recorder.items)


@pytest.mark.parametrize(
    "place", [lambda: schedulers.thread("far"), lambda: schedulers.processes(1)], ids=["thread", "process"]
)
async def test_it_runs_elsewhere(place: Any) -> None:
    assert [0, 0, 1, 1] == await Flow.range(2).publish_on(place()).through(stutter(2)).to_list()


class TestPublisher(PublisherVerification):
    """It keeps the rules."""

    def create_publisher(self, elements: int) -> Publisher[int]:
        return Flow.range((elements + 1) // 2).through(stutter(2)).take(elements)
