"""The watch ends the worker of a task that nobody wants any more. The test plays both ends."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from io import IOBase
from typing import Any, BinaryIO

import pytest
from attrs import define

from reactive_aio.spark._task import watch
from reactive_aio.spark._task.connecting import Address
from reactive_aio.spark._task.watch import LINE, Lifeline, Watch, WhileWanted, end_with, hung_up, line_to_spark, reset
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
    await_the_end_of_watching()
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]


def await_the_end_of_watching(*names: str) -> None:
    for thread in threading.enumerate():
        if thread.name in (names or ("reactive_aio-watch", "reactive_aio-lifeline")):
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


# -- a task whose results Spark reads


def test_a_lifeline_that_nobody_accepts_ends_the_process_when_nobody_listens_any_more(ends: Ends) -> None:
    lifeline = Lifeline(ends.address)
    lifeline.start()
    await_connection(ends.listening)
    ends.listening.close()

    assert ends.ended.wait(LIMIT)
    lifeline.stop()


def test_a_lifeline_that_is_reset_while_it_is_made_is_lost_too(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def late(*args: Any) -> socket.socket:
        monkeypatch.setattr(socket, "create_connection", connect)
        ends.listening.close()
        raise ConnectionResetError

    monkeypatch.setattr(socket, "create_connection", late)
    with WhileWanted(ends.address):
        assert ends.ended.wait(LIMIT)


def test_a_lifeline_that_is_over_ends_nothing(ends: Ends) -> None:
    with WhileWanted(ends.address):
        await_connection(ends.listening)
    ends.listening.close()
    await_the_end_of_watching()

    assert not ends.ended.is_set()


def test_a_task_does_without_a_lifeline_where_nobody_can_be_reached(ends: Ends) -> None:
    ends.listening.close()
    with WhileWanted(ends.address):
        await_the_end_of_watching()

    assert not ends.ended.is_set()


def test_a_worker_ends_when_spark_hangs_up_though_input_waits_to_be_read(ends: Ends) -> None:
    spark, line = socket.socketpair()
    with line:
        end_with(line.fileno())
        spark.sendall(b"rows")
        spark.close()

        assert ends.ended.wait(LIMIT)
        await_the_end_of_watching(LINE)


def test_a_worker_that_is_used_again_has_one_thread_for_its_line(ends: Ends) -> None:
    spark, line = socket.socketpair()
    with line:
        for _ in range(3):
            end_with(line.fileno())

        assert [LINE] == [thread.name for thread in threading.enumerate() if thread.name == LINE]
        assert not hung_up(line.fileno(), 0)
        spark.close()
        await_the_end_of_watching(LINE)


def test_a_task_that_finds_the_line_dead_ends_before_pyspark_says_so(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pyspark.worker.main` is called, by which the line is known."""
    monkeypatch.setattr(watch, "end_with", lambda line: None)

    def main(infile: object, outfile: BinaryIO) -> None:
        with suppress(BrokenPipeError), WhileWanted(None):
            while True:
                outfile.write(b"result")
                outfile.flush()

    spark, line = socket.socketpair()
    spark.close()
    with line, suppress(BrokenPipeError), line.makefile("wb") as outfile:
        main(None, outfile)

    assert ends.ended.is_set()


def test_a_task_does_without_a_line_where_its_file_has_no_number() -> None:
    """As in the workers of a session without a daemon, whose file for the connection is a pair of files."""

    def main(infile: object, outfile: IOBase) -> int | None:
        return line_to_spark()

    spark, line = socket.socketpair()
    with spark, line, line.makefile("rwb") as pair, line.makefile("wb") as file:
        assert main(None, pair) is None
        assert line.fileno() == main(None, file)


def await_connection(listening: socket.socket) -> None:
    """Wait until somebody wants to be accepted, and don't."""
    assert select.select([listening], [], [], LIMIT)[0]
