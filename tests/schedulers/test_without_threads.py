"""Where a platform has no threads or no sockets, as WebAssembly: errors that say so, and what to do instead."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from tests.schedulers import work
from tests.subscribers import ended_by

PLACES = [schedulers.thread("reader"), schedulers.threads(2), schedulers.processes(2)]


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def check(error: BaseException, place: Any, said: str) -> None:
    assert f"{place.name} could not be started: {said}" in str(error)
    assert "use schedulers.current()" in str(error)
    assert error.__cause__ is not None


@pytest.mark.usefixtures("without_threads")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
async def test_a_flow_on_a_place_that_needs_threads_ends_with_an_error_that_names_it(place: Any) -> None:
    error = await ended_by(Flow.range(3).publish_on(place).map(work.square))

    assert RuntimeError is type(error)
    check(error, place, "can't start new thread")


@pytest.mark.usefixtures("without_threads")
@pytest.mark.parametrize("place", [schedulers.thread("reader"), schedulers.processes(2)], ids=lambda place: place.name)
def test_so_does_opening_it_which_leaves_nothing(place: Any) -> None:
    with pytest.raises(RuntimeError) as raised:
        place.open()

    check(raised.value, place, "can't start new thread")
    place.close()


async def test_a_flow_on_processes_ends_with_it_where_there_are_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError("not supported")

    pool = schedulers.processes(2)
    monkeypatch.setattr(socket, "socketpair", refused)
    error = await ended_by(Flow.range(3).publish_on(pool).map(work.square))

    check(error, pool, "not supported")


@pytest.mark.parametrize("kind", [OSError, ValueError, work.OwnError], ids=lambda kind: kind.__name__)
async def test_a_worker_process_that_cannot_be_started_fails_the_flow(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise kind("not supported")

    monkeypatch.setattr(subprocess, "Popen", refused)
    error = await asyncio.wait_for(ended_by(Flow.range(3).publish_on(schedulers.processes(2)).map(work.square)), 60.0)

    assert kind is type(error)
    assert "not supported" in str(error)
