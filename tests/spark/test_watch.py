"""What ends the worker of a task that nobody wants any more, with both ends played by hand."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from attrs import define

from reactive_aio.spark import watch
from reactive_aio.spark.connecting import Address
from reactive_aio.spark.watch import Watch, reset
from tests.spark.waiting import LIMIT


@define(eq=False)
class Ends:
    """The loop's side, the task's connection to it, and what happened."""

    listening: socket.socket
    loop: socket.socket
    task: socket.socket
    address: Address
    ended: threading.Event
    """Whether the process would have ended."""


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1], b"s" * 32)
        with socket.create_connection((address.host, address.port)) as task, listening.accept()[0] as loop:
            ended = threading.Event()
            monkeypatch.setattr(watch, "end_process", ended.set)
            yield Ends(listening, loop, task, address, ended)
    assert not [thread.name for thread in threading.enumerate() if "watch" in thread.name]


def await_the_end_of_watching() -> None:
    for thread in threading.enumerate():
        if "watch" in thread.name:
            thread.join(LIMIT)


def hang_up(connection: socket.socket) -> None:
    reset(connection)
    connection.close()


def test_a_reset_behind_which_nobody_listens_ends_the_process(ends: Ends) -> None:
    watching = Watch(ends.task, ends.address)
    watching.start()
    ends.listening.close()
    hang_up(ends.loop)

    assert ends.ended.wait(LIMIT)
    watching.stop()


def test_what_the_task_has_not_read_keeps_it_from_nothing(ends: Ends) -> None:
    watching = Watch(ends.task, ends.address)
    watching.start()
    ends.loop.setblocking(False)
    with suppress(BlockingIOError):
        while ends.loop.send(bytes(65_536)):
            pass
    ends.listening.close()
    hang_up(ends.loop)

    assert ends.ended.wait(LIMIT)
    watching.stop()


def test_a_reset_behind_which_the_loop_listens_is_a_lost_connection_and_no_more(ends: Ends) -> None:
    watching = Watch(ends.task, ends.address)
    watching.start()
    hang_up(ends.loop)
    asking, _ = ends.listening.accept()
    with asking:
        assert b"" == asking.recv(1)

    await_the_end_of_watching()
    assert not ends.ended.is_set()
    watching.stop()


def test_what_the_loop_says_or_that_it_says_no_more_is_no_reset(ends: Ends) -> None:
    beats = threading.Semaphore(0)
    watching = Watch(ends.task, ends.address, beats.release, 0.001)
    ends.listening.close()
    ends.loop.sendall(b"order")
    ends.loop.shutdown(socket.SHUT_WR)
    assert b"o" == ends.task.recv(1)
    watching.start()

    assert all(beats.acquire(timeout=LIMIT) for _ in range(3))
    watching.stop()
    assert not ends.ended.is_set()


def test_a_task_that_is_over_ends_nothing(ends: Ends) -> None:
    watching = Watch(ends.task, ends.address)
    watching.start()
    ends.listening.close()
    watching.stop()

    assert b"" == ends.loop.recv(1)  # it has hung up
    assert not ends.ended.is_set()


def test_what_is_sent_arrives_before_the_end(ends: Ends) -> None:
    watching = Watch(ends.task, ends.address)
    watching.start()
    ends.task.sendall(b"last")
    watching.stop()
    ends.task.close()

    assert [b"last", b""] == [ends.loop.recv(9), ends.loop.recv(9)]


def test_it_says_again_and_again_that_the_task_is_alive(ends: Ends) -> None:
    beats = threading.Semaphore(0)
    watching = Watch(ends.task, ends.address, beats.release, 0.001)
    watching.start()

    assert all(beats.acquire(timeout=LIMIT) for _ in range(3))
    watching.stop()


def test_without_a_way_to_wait_for_a_reset_it_only_beats(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll")
    beats = threading.Semaphore(0)
    watching, silent = Watch(ends.task, ends.address, beats.release, 0.001), Watch(ends.task, ends.address)
    watching.start()
    silent.start()

    assert all(beats.acquire(timeout=LIMIT) for _ in range(3))
    assert ["reactive_aio-watch"] == [thread.name for thread in threading.enumerate() if "watch" in thread.name]
    silent.stop()
    watching.stop()
