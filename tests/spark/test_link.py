"""The loop's end of a task's connection, with a transport that is played by hand."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock

import pytest

pytest.importorskip("pyspark")

from reactive_aio._remote.frames import PART, Frame
from reactive_aio.spark._delivery.link import Link


@pytest.fixture
async def link() -> Link:
    """Return the link of a task that has proved to know the secret."""
    link = Link(b"secret", Mock(), set(), Mock())
    link._transport = Mock()
    link._transport.is_closing.return_value = False
    link._known = True
    link._deadline.cancel()
    return link


def arrive(link: Link, count: int) -> None:
    link.data_received(Frame(PART, 0, count, pickled=b"p").whole())


async def test_a_task_that_sends_more_than_it_was_granted_is_dropped(link: Link) -> None:
    link.grant(2)
    arrive(link, 2)
    arrive(link, 1)

    assert 1 == cast("Any", link._listener).chunk.call_count
    assert cast("Any", link._transport).abort.called


async def test_what_was_on_its_way_when_a_task_was_stopped_is_ignored(link: Link) -> None:
    link.grant(2)
    link.stop()
    link.granted = 0  # as the delivery takes it back
    arrive(link, 2)

    assert not cast("Any", link._listener).chunk.called
    assert not cast("Any", link._transport).abort.called
