"""Where a platform has no threads or no sockets, as WebAssembly: errors that say so, and what to do instead."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from importlib import import_module
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
    with monkeypatch.context() as without:  # as long as that, for the loop itself needs some at its end
        without.setattr("_socket.socketpair", refused)
        error = await ended_by(Flow.range(3).publish_on(pool).map(work.square))

    check(error, pool, "not supported")


async def test_a_region_for_which_there_are_no_sockets_fails_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any) -> Any:
        raise OSError("too many open files")

    with schedulers.processes(1) as pool:
        await Flow.range(1).publish_on(pool).map(work.square).to_list()  # the worker, which takes a pair too, is there
        with monkeypatch.context() as scarce:
            scarce.setattr("_socket.socketpair", refused)
            error = await ended_by(Flow.range(3).publish_on(pool).map(work.square))
        assert "too many open files" == str(error)
        assert [0, 1, 4] == await Flow.range(3).publish_on(pool).map(work.square).to_list()


@pytest.mark.parametrize("kind", [OSError, ValueError, work.OwnError], ids=lambda kind: kind.__name__)
async def test_a_worker_process_that_cannot_be_started_fails_the_flow(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise kind("not supported")

    monkeypatch.setattr(import_module("reactive_aio.schedulers._team"), "_command", refused)
    error = await asyncio.wait_for(ended_by(Flow.range(3).publish_on(schedulers.processes(2)).map(work.square)), 60.0)

    assert kind is type(error)
    assert "not supported" in str(error)


def test_its_channels_are_closed_also_where_the_loop_is_closed_first_and_forgets_the_callback_that_does_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise OSError("not supported")

    files, loop_has_stopped, keepers = list[int](), threading.Event(), list[threading.Thread]()
    module = import_module("reactive_aio.schedulers._team")
    channel, connect = module.Team.channel, module.Team._connect

    def recorded(team: Any) -> Any:
        ours, theirs = channel(team)
        files.extend([ours.socket.fileno(), ours._memory.file])
        keepers.append(team._thread)
        return ours, theirs

    def late(team: Any, ends: list[Any]) -> None:
        loop_has_stopped.wait(60.0)
        connect(team, ends)

    monkeypatch.setattr(module, "_command", refused)
    monkeypatch.setattr(module.Team, "channel", recorded)
    monkeypatch.setattr(module.Team, "_connect", late)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ended_by(Flow.range(3).publish_on(schedulers.processes(2)).map(work.square)))
    loop_has_stopped.set()
    keepers[0].join()
    loop.close()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        del loop
        gc.collect()

    assert [] == warned
    assert 4 == len(files)
    for file in files:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(file)
