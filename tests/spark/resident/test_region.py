"""Resident regions without a cluster: tasks come and go, and the stream is none the wiser."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("pyspark")

from reactive_aio import Flow, SparkJobError, WorkerDiedError, hooks
from reactive_aio._remote.frames import BEAT, CHUNK, CREDIT, FAILED, HEAD, LAST, PART, READY, REGION, Decoder, Frame
from reactive_aio._remote.handshake import MAGIC, REPLY, Greeter
from reactive_aio.spark._delivery.slots import Seat
from reactive_aio.spark._resident import region
from tests.schedulers import work
from tests.spark.resident.by_hand import Cluster
from tests.spark.waiting import LIMIT, until
from tests.subscribers import Recorder


def tasks() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("reactive_aio-")]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    for task in tasks():  # a subscriber hears of the end before the last of them is gone
        task.join(LIMIT)
    assert not tasks()


async def through(items: Any) -> list[Any]:
    return [item async for item in items]


# -- elements


@pytest.mark.parametrize("prefetch", [1, 3, 256])
async def test_elements_go_there_and_back_in_order(cluster: Cluster, prefetch: int) -> None:
    flow = Flow.range(500).publish_on(cluster.workers(), prefetch=prefetch).map(work.square).filter(lambda n: n % 2)

    assert [n * n for n in range(500) if n % 2] == await flow.to_list()


async def test_a_function_that_makes_many_of_one_waits_for_demand(cluster: Cluster) -> None:
    flow = Flow.of(10**12, 3).publish_on(cluster.workers(), prefetch=4).flat_map_iterable(work.many)

    assert list(range(100)) == await flow.take(100).to_list()


async def test_tasks_start_as_there_is_work_for_them(cluster: Cluster) -> None:
    assert [] == await Flow.empty().publish_on(cluster.workers()).map(work.square).to_list()
    assert [] == cluster.started

    assert [49] == await Flow.of(7).publish_on(cluster.workers(5)).map(work.square).to_list()
    assert [0] == cluster.started


async def test_large_arrays_travel_beside_the_pickle(cluster: Cluster) -> None:
    np = pytest.importorskip("numpy")
    arrays = [np.full(200_000, n, dtype=np.float64) for n in range(3)]

    assert [(True, 200_000.0 * n) for n in range(3)] == await Flow.from_iterable(arrays).publish_on(
        cluster.workers()
    ).map(work.addresses).to_list()


async def test_arrow_batches_travel_beside_the_pickle_too(cluster: Cluster) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"n": list(range(50_000))})

    (back,) = await Flow.of(batch).publish_on(cluster.workers()).map(lambda batch: batch.slice(1)).to_list()

    assert back.equals(batch.slice(1))


async def test_an_element_that_cannot_be_pickled_fails_behind_those_before_it(cluster: Cluster) -> None:
    elements = [1, 2, 3, threading.Lock(), 5]
    recorder = Recorder(request=10)
    Flow.from_iterable(elements).publish_on(cluster.workers()).map(work.same).subscribe(recorder)
    await recorder.over.wait()

    assert [1, 2, 3] == recorder.items
    assert isinstance(recorder.error, TypeError)
    assert "it is element #3" in recorder.error.__notes__


async def test_a_failure_comes_behind_the_results_before_it_and_says_where(cluster: Cluster) -> None:
    recorder = Recorder(request=10)
    Flow.range(9).publish_on(cluster.workers()).map(work.divide).subscribe(recorder)
    await recorder.over.wait()

    assert [1 / (5 - n) for n in range(5)] == recorder.items
    assert isinstance(recorder.error, ZeroDivisionError)
    operator, trace = recorder.error.__notes__
    assert operator.startswith("in map(divide), chained at")
    assert "on element #5" in operator
    assert "return 1 / (5 - n)" in trace


# -- what is lost


class Gate:
    """A function of a region that waits, in its task, until the test says so."""

    inside = threading.Event()
    open = threading.Event()

    def __init__(self) -> None:
        Gate.inside, Gate.open = threading.Event(), threading.Event()

    def __call__(self, n: int) -> int:
        if n == 3:
            Gate.inside.set()
            assert Gate.open.wait(LIMIT)
        return n * n


async def test_a_chunk_of_a_lost_task_is_done_by_another(cluster: Cluster) -> None:
    gate = Gate()
    end = asyncio.create_task(Flow.range(200).publish_on(cluster.workers(), prefetch=16).map(gate).to_list())
    await until(gate.inside.is_set)
    await until(lambda: len(cluster.connections) == 2)
    for at in range(2):
        cluster.kill(at)
    gate.open.set()

    assert [n * n for n in range(200)] == await end
    assert len(cluster.connections) > 2


async def test_a_slot_that_was_refused_and_is_not_needed_any_more_keeps_no_other_flow_from_it(cluster: Cluster) -> None:
    workers, gate = cluster.workers(), Gate()
    other = Seat.at(workers.context, lambda: None)
    other.slots.total = 9
    assert [True] * 8 + [False] == [other.take() for _ in range(9)]
    other.decline()
    elements = Flow.range(200).concat(Flow.never())
    async with elements.publish_on(workers, prefetch=64).map(gate).open() as items:
        reading = asyncio.create_task(anext(items))
        await until(gate.inside.is_set)
        (own,) = other.slots.seats - {other}
        await until(lambda: own.refused)  # it has one slot, and would like two
        gate.open.set()
        assert [n * n for n in range(200)] == [await reading, *[await anext(items) for _ in range(199)]]

        other.give_back()
        other.give_back()
        assert other.take()


async def test_what_a_lost_task_has_given_of_a_chunk_is_neither_doubled_nor_lost(cluster: Cluster) -> None:
    flow = Flow.of(10_000).publish_on(cluster.workers(1), prefetch=16).flat_map_iterable(work.many)
    got: list[int] = []
    async with flow.open() as items:
        async for item in items:
            got.append(item)
            if item in {50, 5_000}:
                cluster.kill(-1)

    assert list(range(10_000)) == got
    assert 3 == len(cluster.connections)


async def test_credit_that_was_given_to_a_lost_task_is_not_given_again(cluster: Cluster) -> None:
    recorder = Recorder(request=1)
    Flow.of(1_000).publish_on(cluster.workers(1), prefetch=4).flat_map_iterable(work.many).subscribe(recorder)
    await until(lambda: recorder.items)
    cluster.kill(0)
    await until(lambda: len(cluster.connections) == 2)
    recorder.request(10**6)
    await recorder.over.wait()

    assert list(range(1_000)) == recorder.items
    assert "complete" == recorder.kinds[-1]


async def test_a_chunk_that_is_lost_again_and_again_fails_the_flow(cluster: Cluster) -> None:
    def deadly(n: int) -> int:
        if n == 3:
            cluster.kill(-1)
        return n

    async with asyncio.timeout(LIMIT):
        with pytest.raises(WorkerDiedError, match="has lost 4 tasks while they worked on elements #3 to #3"):
            await Flow.range(9).publish_on(cluster.workers(1), prefetch=1).map(Shared(deadly)).to_list()
    assert 4 == len(cluster.connections)


class Shared:
    """Travels as what it is, for the tasks are in this process."""

    functions: ClassVar[list[Any]] = []

    def __init__(self, function: Any) -> None:
        self.at = len(self.functions)
        self.functions.append(function)

    def __call__(self, item: Any) -> Any:
        return self.functions[self.at](item)


async def test_tasks_that_fail_are_started_anew_as_long_as_that_leads_somewhere(cluster: Cluster) -> None:
    failed = 0

    def unlucky(_: int) -> None:
        nonlocal failed
        if cluster.connections and failed < 3:
            failed += 1
            raise OSError("no connection")

    cluster.before = unlucky
    got: list[int] = []
    async with Flow.range(9).publish_on(cluster.workers(1), prefetch=1).map(work.square).open() as items:
        async for item in items:
            got.append(item)
            if item == 4:
                cluster.kill(0)

    assert [n * n for n in range(9)] == got
    assert 3 == failed


async def test_tasks_that_never_connect_fail_the_flow_at_once(cluster: Cluster) -> None:
    cluster.failing = [SparkJobError("the Spark job failed: no route to host")]
    with pytest.raises(SparkJobError, match="no route"):
        await Flow.range(9).publish_on(cluster.workers(1)).map(work.square).to_list()

    assert [0] == cluster.started


async def test_tasks_that_do_nothing_but_fail_fail_the_flow(cluster: Cluster) -> None:
    async with (
        asyncio.timeout(LIMIT),
        Flow.range(9).publish_on(cluster.workers(1), prefetch=1).map(work.square).open() as items,
    ):
        assert 0 == await anext(items)
        cluster.failing = [SparkJobError(f"failure {n}") for n in range(9)]
        cluster.kill(0)
        with pytest.raises(SparkJobError, match="failure 3"):
            await through(items)


# -- who says nothing


class Impostor:
    """A task that is played by the test."""

    def __init__(self, cluster: Cluster) -> None:
        self.connection = socket.create_connection(("127.0.0.1", cluster.port))
        self.connection.settimeout(LIMIT)
        self.greeter = Greeter(cluster.secret, 0, 0)
        self.decoder = Decoder()
        self.frames: list[Frame] = []
        self.entered = False

    async def enter(self) -> None:
        loop = asyncio.get_running_loop()
        self.connection.sendall(self.greeter.greeting)
        reply = await loop.run_in_executor(None, self.connection.recv, REPLY.size)
        self.connection.sendall(self.greeter.answer(reply))
        self.entered = True

    def say(self, frame: Frame) -> None:
        for view in frame.encoded():
            self.connection.sendall(view)

    async def hear(self, kind: int) -> Frame:
        loop = asyncio.get_running_loop()
        while True:
            for at, frame in enumerate(self.frames):
                if frame.kind == kind:
                    return self.frames.pop(at)
            data = await loop.run_in_executor(None, self.connection.recv, 65_536)
            assert data
            self.frames += self.decoder.feed(data)

    async def hung_up(self) -> bool:
        """Wait until the loop has closed the connection."""

        def drained() -> bool:
            with suppress(ConnectionResetError):
                while data := self.connection.recv(65_536):
                    if self.entered:
                        self.frames += self.decoder.feed(data)
            return True

        return await asyncio.get_running_loop().run_in_executor(None, drained)


async def impostor(
    cluster: Cluster, elements: int = 5, room: int = 1, **options: Any
) -> tuple[asyncio.Task[list[Any]], Impostor]:
    """Begin a flow whose first chunk goes to a task that the test plays, if that has room for it."""
    hold = threading.Event()

    def wait(_: int) -> None:
        hold.wait(LIMIT)

    cluster.before = wait
    workers = cluster.workers(1, **options)
    end = asyncio.create_task(Flow.range(elements).publish_on(workers, prefetch=2).map(work.square).to_list())
    await until(lambda: cluster.started)
    played = await join(cluster, room)
    hold.set()
    return end, played


async def join(cluster: Cluster, room: int = 1) -> Impostor:
    """Add a task that the test plays."""
    played = Impostor(cluster)
    await played.enter()
    await played.hear(REGION)
    played.say(Frame(READY, count=room))
    return played


@pytest.fixture
def patience() -> Iterator[pytest.MonkeyPatch]:
    """Have regions hear nothing for as long as the test likes; until it is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region, "SILENCE", 10**9)
        yield patch


async def test_a_task_that_shows_no_sign_of_life_is_given_up(cluster: Cluster, patience: pytest.MonkeyPatch) -> None:
    end, silent = await impostor(cluster, beat=0.05)
    await silent.hear(CHUNK)
    patience.undo()

    assert [0, 1, 4, 9, 16] == await end
    assert await silent.hung_up()
    silent.connection.close()


async def test_signs_of_life_keep_a_task_that_takes_long(cluster: Cluster, patience: pytest.MonkeyPatch) -> None:
    end, slow = await impostor(cluster, elements=1, beat=0.02)
    chunk = await slow.hear(CHUNK)
    slow.say(Frame(BEAT))
    await asyncio.sleep(0.02)  # it has been heard
    patience.undo()
    for _ in range(20):
        slow.say(Frame(BEAT))
        await asyncio.sleep(0.02)
    slow.say(Frame(LAST, chunk.number, 1, 1, 1, pickle.dumps(["slow"])))

    assert ["slow"] == await end
    slow.connection.close()


async def test_a_task_that_sends_more_than_it_was_allowed_is_dropped(cluster: Cluster) -> None:
    end, greedy = await impostor(cluster)
    chunk = await greedy.hear(CHUNK)
    greedy.say(Frame(PART, chunk.number, 99, 1, 0, pickle.dumps(["too much"] * 99)))

    assert [0, 1, 4, 9, 16] == await end
    assert await greedy.hung_up()
    greedy.connection.close()


async def test_a_task_that_announces_more_than_there_is_memory_for_is_given_up(cluster: Cluster) -> None:
    dropped: list[BaseException] = []
    with hooks.using(on_error_dropped=dropped.append):
        end, vast = await impostor(cluster)
    chunk = await vast.hear(CHUNK)
    vast.connection.sendall(HEAD.pack(PART, chunk.number, 1, 1, 0, 2**62, 0))

    assert [0, 1, 4, 9, 16] == await end
    assert await vast.hung_up()
    assert [MemoryError] == [type(error) for error in dropped]
    vast.connection.close()


@pytest.mark.parametrize(
    ("kind", "count", "pickled"),
    [
        (FAILED, 0, b"no pickle"),
        (FAILED, 0, pickle.dumps("no failure")),
        (PART, 1, pickle.dumps([1, 2])),
        (LAST, 0, b""),
    ],
)
async def test_what_a_task_says_and_cannot_be_read_fails_the_flow(
    cluster: Cluster, kind: int, count: int, pickled: bytes
) -> None:
    end, odd = await impostor(cluster)
    chunk = await odd.hear(CHUNK)
    odd.say(Frame(kind, chunk.number, count, 1, 0, pickled))

    with pytest.raises(Exception, match=r".") as failed:
        await end
    assert "while the results of a worker process were unpickled" in failed.value.__notes__
    odd.connection.close()


async def test_a_task_gets_no_chunk_that_it_has_no_room_for(cluster: Cluster) -> None:
    end, full = await impostor(cluster, room=0)
    full.say(Frame(99))  # which is not of the protocol

    assert [0, 1, 4, 9, 16] == await end
    assert await full.hung_up()
    assert CHUNK not in [frame.kind for frame in full.frames]
    full.connection.close()


async def test_credit_that_a_lost_task_has_used_is_not_given_to_the_next(cluster: Cluster) -> None:
    recorder = Recorder(request=0)
    hold = threading.Event()

    def wait(_: int) -> None:
        hold.wait(LIMIT)

    cluster.before = wait
    Flow.of(1).publish_on(cluster.workers(1), prefetch=4).map(work.square).subscribe(recorder)
    await until(lambda: cluster.started)
    first = await join(cluster)
    chunk = await first.hear(CHUNK)
    assert (5, 0) == (chunk.count, chunk.detail)
    first.say(Frame(PART, chunk.number, 5, 0, 0, pickle.dumps(list("abcde"))))
    recorder.request(3)
    await until(lambda: len(recorder.items) == 3)
    first.connection.close()

    second = await join(cluster)
    again = await second.hear(CHUNK)
    assert (chunk.number, 0, 5) == (again.number, again.count, again.detail)
    recorder.request(2)
    more = await second.hear(CREDIT)
    assert (chunk.number, 5) == (more.number, more.count)
    second.say(Frame(LAST, chunk.number, 1, 1, 0, pickle.dumps(["f"])))
    recorder.request(1)
    await recorder.over.wait()

    assert list("abcdef") == recorder.items
    hold.set()
    second.connection.close()
    await until(lambda: not tasks())


class Bomb:
    """Leaves a sign where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("says", ["nothing", "noise", "a wrong secret", "frames at once"])
async def test_a_connection_without_the_secret_is_dropped_before_anything_is_unpickled(
    cluster: Cluster, tmp_path: Path, says: str
) -> None:
    sign = tmp_path / "unpickled"
    bomb = b"".join(bytes(view) for view in Frame(PART, 0, 1, 1, 0, pickle.dumps([Bomb(sign)])).encoded())
    async with Flow.range(10**6).publish_on(cluster.workers(), prefetch=4).map(work.square).open() as items:
        assert 0 == await anext(items)
        stranger = Impostor(cluster)
        if says == "noise":
            stranger.connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        elif says == "a wrong secret":
            stranger.connection.sendall(Greeter(b"x" * 32, 0, 0).greeting + b"y" * 32 + bomb)
        elif says == "frames at once":
            stranger.connection.sendall(bomb * 3)
        if says != "nothing":
            assert await stranger.hung_up()
        assert [1, 4, 9] == [await anext(items) for _ in range(3)]

    assert await stranger.hung_up()
    assert not sign.exists()
    stranger.connection.close()


async def test_a_task_believes_no_loop_that_does_not_know_the_secret(cluster: Cluster) -> None:
    from reactive_aio.spark._resident.task import ResidentTask
    from reactive_aio.spark._task.connecting import Address

    listening = socket.create_server(("127.0.0.1", 0))
    with listening:
        task = ResidentTask(Address("127.0.0.1", listening.getsockname()[1], b"s" * 32), 5.0)
        served = asyncio.get_running_loop().run_in_executor(None, task.serve, 0, ())
        connection, _ = listening.accept()
        with connection:
            connection.sendall(MAGIC + bytes(REPLY.size - 4))
            with pytest.raises(ConnectionError, match="does not know the secret"):
                await served


# -- idle, and left


async def test_idle_tasks_end_and_start_again_with_the_next_element(cluster: Cluster) -> None:
    more = asyncio.Event()

    async def numbers() -> Any:
        yield 1
        await more.wait()
        yield 2

    flow = Flow.from_async_iterable(numbers())
    workers = cluster.workers(1, idle=0.02)
    async with flow.publish_on(workers).map(work.square).open() as items:
        assert 1 == await anext(items)
        await until(lambda: not any("task" in each.name for each in tasks()))
        assert [0] == cluster.started
        more.set()
        assert 4 == await anext(items)

    assert 2 == len(cluster.started)


async def test_leaving_in_the_middle_of_a_function_is_heard_when_it_returns(cluster: Cluster) -> None:
    gate = Gate()
    end = asyncio.create_task(Flow.range(200).publish_on(cluster.workers(), prefetch=16).map(gate).to_list())
    await until(gate.inside.is_set)
    end.cancel()
    gate.open.set()

    with pytest.raises(asyncio.CancelledError):
        await end
    assert {asyncio.current_task()} == asyncio.all_tasks()


async def test_what_the_loop_has_not_asked_for_is_not_under_way(cluster: Cluster) -> None:
    taken = 0

    def noted(n: int) -> int:
        nonlocal taken
        taken = n + 1
        return n

    recorder = Recorder(request=3)
    Flow.range(10**6).map(noted).publish_on(cluster.workers(), prefetch=8).map(work.square).subscribe(recorder)
    await until(lambda: len(recorder.items) == 3)
    most = 3 + 8
    assert taken <= most
    recorder.cancel()
    await until(lambda: not tasks())
    assert taken <= most
