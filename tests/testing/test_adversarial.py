"""The adversarial loop: it finds what relies on the order of tasks, and is a legal loop for all else."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from reactive_aio import Flow, schedulers
from reactive_aio.testing import AdversarialLoop, adversarial, settle
from tests.subscribers import Recorder


def run(seed: int, main: Callable[[], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    with asyncio.Runner(loop_factory=lambda: AdversarialLoop(seed, **options)) as runner:
        return runner.run(main())


async def names_in_order(names: str = "abc", steps: int = 1) -> str:
    order: list[str] = []

    async def worker(name: str) -> None:
        for _ in range(steps):
            order.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(worker(name))
    return "".join(order)


def test_the_same_seed_gives_the_same_order() -> None:
    def main() -> Coroutine[Any, Any, str]:
        return names_in_order("abcdef", 5)

    assert [run(seed, main) for seed in range(10)] == [run(seed, main) for seed in range(10)]


def test_all_orders_of_three_tasks_occur() -> None:
    assert {"abc", "acb", "bac", "bca", "cab", "cba"} == {run(seed, names_in_order) for seed in range(60)}


def test_a_planted_order_bug_that_asyncio_hides_is_found_and_the_seed_named() -> None:
    async def test() -> None:
        account: dict[str, int] = {}

        async def opens() -> None:
            account["balance"] = 0

        async def deposits() -> None:
            account["balance"] += 10  # relies on the other task having run

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(opens())
            tasks.create_task(deposits())

    asyncio.run(test())
    with pytest.raises(ExceptionGroup) as caught:
        adversarial(seeds=10)(test)()

    (note,) = caught.value.__notes__
    seed = int(note.partition("seed=")[2].partition(")")[0])
    assert f"@adversarial(seeds=[{seed}])" in note
    with pytest.raises(ExceptionGroup):
        adversarial(seeds=[seed])(test)()


def test_a_bug_that_needs_one_task_to_get_far_ahead_is_found() -> None:
    async def main() -> bool:
        queue: asyncio.Queue[int] = asyncio.Queue()
        slow, fast = [0], [0]

        async def steps(count: list[int]) -> None:
            for _ in range(10):
                future = asyncio.get_running_loop().create_future()
                future.set_result(None)
                await asyncio.wait([future])
                asyncio.get_running_loop().call_soon(queue.put_nowait, 1)
                await queue.get()
                count[0] += 1

        task = asyncio.create_task(steps(slow))
        await steps(fast)
        ahead = fast[0] - slow[0]
        await task
        return ahead >= 3

    assert any(run(seed, main) for seed in range(30))
    assert not any(run(seed, main, hold=0) for seed in range(30))


def test_it_runs_every_seed_and_passes_the_arguments_on() -> None:
    seen: list[tuple[int, str]] = []

    @adversarial(seeds=[3, 5, 8])
    async def test(word: str) -> None:
        running = asyncio.get_running_loop()
        assert isinstance(running, AdversarialLoop)
        seen.append((running.seed, word))

    test("hello")

    assert [(3, "hello"), (5, "hello"), (8, "hello")] == seen


# -- it is a legal loop


@adversarial(seeds=30)
async def test_callbacks_of_call_soon_keep_their_order() -> None:
    seen: list[int] = []
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    for n in range(20):
        loop.call_soon(seen.append, n)
        tasks.add(asyncio.create_task(asyncio.sleep(0)))
    await asyncio.wait(tasks)

    assert list(range(20)) == seen


@adversarial(seeds=30)
async def test_a_plain_callback_has_run_when_a_task_has_given_the_loop_a_turn() -> None:
    seen: list[str] = []
    asyncio.get_running_loop().call_soon(seen.append, "called")
    await asyncio.sleep(0)

    assert ["called"] == seen


@adversarial(seeds=30)
async def test_the_calls_of_one_thread_keep_their_order() -> None:
    seen: list[int] = []
    loop = asyncio.get_running_loop()

    def call() -> None:
        for n in range(20):
            loop.call_soon_threadsafe(seen.append, n)

    await asyncio.to_thread(call)
    await settle()

    assert list(range(20)) == seen


def test_a_call_of_another_thread_comes_before_or_behind_a_task_that_was_ready() -> None:
    async def main() -> str:
        order: list[str] = []
        loop = asyncio.get_running_loop()

        async def worker() -> None:
            order.append("task")

        task = asyncio.create_task(worker())
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(order.append, "thread"))
        thread.start()
        thread.join()
        await task
        await settle()
        return " ".join(order)

    assert {"task thread", "thread task"} == {run(seed, main) for seed in range(20)}


@adversarial(seeds=20)
async def test_streams_of_asyncio_work() -> None:
    served = asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        served.release()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()

        async def talk(word: bytes) -> None:
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(5):
                writer.write(word + b"\n")
                assert word.upper() + b"\n" == await reader.readline()
            writer.close()
            await writer.wait_closed()

        async with asyncio.TaskGroup() as tasks:
            for word in (b"one", b"two", b"three"):
                tasks.create_task(talk(word))
        for _ in range(3):
            await served.acquire()


@adversarial(seeds=20)
async def test_the_primitives_of_asyncio_work() -> None:
    lock, queue, seen = asyncio.Lock(), asyncio.Queue[int](2), list[int]()
    condition, semaphore = asyncio.Condition(), asyncio.Semaphore(2)

    async def produce(start: int) -> None:
        for n in range(start, start + 5):
            async with semaphore, lock:
                await queue.put(n)

    async def consume() -> None:
        async with asyncio.timeout(60):
            while True:
                item = await queue.get()
                async with condition:
                    seen.append(item)
                    condition.notify_all()

    async with asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(consume())
        for start in (0, 10, 20):
            tasks.create_task(produce(start))
        async with condition:
            await condition.wait_for(lambda: len(seen) == 15)
        consumer.cancel()

    assert sorted(seen) == [*range(5), *range(10, 15), *range(20, 25)]
    assert ["a", "b"] == list(await asyncio.gather(asyncio.sleep(2, "a"), asyncio.sleep(1, "b")))


@adversarial(seeds=20)
async def test_flows_deliver_in_order_whatever_the_order_of_their_regions() -> None:
    here = schedulers.current()
    flow = Flow.range(100).publish_on(here, prefetch=3).map(str).publish_on(here, prefetch=2)
    assert [str(n) for n in range(100)] == await flow.to_list()

    subscriber = Recorder()
    flow.subscribe(subscriber)
    for _ in range(10):
        subscriber.request(3)
        await settle()
    subscriber.cancel()
    assert [str(n) for n in range(30)] == subscriber.items


def test_the_turns_of_two_regions_are_permuted() -> None:
    async def main() -> str:
        order: list[str] = []
        for name in "ab":
            subscriber = Recorder()
            Flow.of(name).map(order.append).map(str).subscribe(subscriber)
            subscriber.request(1)
        await settle()
        return "".join(order)

    assert {"ab", "ba"} == {run(seed, main, hold=0) for seed in range(20)}


@pytest.mark.parametrize("seeds", [0, []])
def test_a_test_without_a_seed_is_refused_since_it_would_not_run(seeds: Any) -> None:
    with pytest.raises(ValueError, match="without a seed the test does not run"):
        adversarial(seeds=seeds)
