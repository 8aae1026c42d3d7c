"""The pytest plugin in a run of its own: with pytest-asyncio in both of its modes, and without it."""

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import reactive_aio
from reactive_aio.testing import VirtualTimeLoop
from reactive_aio.testing.plugin import VirtualTime


async def test_virtual_time_is_a_virtual_loop(virtual_time: VirtualTime) -> None:
    await virtual_time.advance(86400)
    assert 86400 == virtual_time.now
    assert isinstance(virtual_time.loop, VirtualTimeLoop)


async def test_others_run_on_the_loops_they_are_configured_for() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)


def test_virtual_time_runs_coroutines_in_an_ordinary_test(virtual_time: VirtualTime) -> None:
    async def main() -> float:
        await virtual_time.advance(5)
        await virtual_time.settle()
        return virtual_time.now

    assert 5 == virtual_time.run(main())


def pytest_run(folder: Path, source: str, *options: str) -> str:
    """Run pytest on one file and give its output."""
    (folder / "test_it.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--rootdir", ".", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(Path(reactive_aio.__file__).parents[1])
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


STRICT = ["-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"]
AUTO = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]

ASYNC_TESTS = """
    import asyncio, pytest
    from reactive_aio import Flow
    from reactive_aio.testing import VirtualTimeLoop

    @pytest.fixture
    async def resource():
        yield asyncio.get_running_loop()

    @pytest.mark.asyncio
    async def test_virtual(virtual_time, resource):
        await asyncio.sleep(86400)
        assert virtual_time.now == 86400
        assert resource is virtual_time.loop

    @pytest.mark.asyncio
    async def test_ordinary():
        assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)

    @pytest.mark.asyncio
    async def test_leak(no_leaks):
        asyncio.get_running_loop().call_later(3600, print)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("n", [1, 2])
    async def test_clean(no_leaks, n):
        assert n in (1, 2)

    @pytest.mark.asyncio
    async def test_probe(probe):
        async with probe(Flow.of(1), request=1) as p:
            await p.expect_next(1)
            await p.expect_complete()

    @pytest.mark.asyncio
    async def test_probe_forgotten(probe):
        probe(Flow.of(1))
"""


@pytest.mark.costly
def test_with_pytest_asyncio_in_auto_mode(tmp_path: Path) -> None:
    output = pytest_run(tmp_path, ASYNC_TESTS, *AUTO)

    assert "1 failed, 6 passed, 1 error" in output
    assert "LeakError: left behind:" in output
    assert "timer <TimerHandle" in output
    assert "made probes and did not enter them" in output


@pytest.mark.costly
def test_with_pytest_asyncio_in_strict_mode(tmp_path: Path) -> None:
    source = ASYNC_TESTS.replace("@pytest.fixture", "import pytest_asyncio\n    @pytest_asyncio.fixture")

    assert "1 failed, 6 passed, 1 error" in pytest_run(tmp_path, source, *STRICT)


@pytest.mark.costly
def test_loops_that_a_conftest_configures_are_not_disturbed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        textwrap.dedent("""
            import asyncio
            class Mine(asyncio.SelectorEventLoop):
                pass
            def pytest_asyncio_loop_factories(config, item):
                return {"first": Mine, "second": Mine}
        """)
    )
    source = """
        import asyncio
        async def test_virtual(virtual_time):
            assert virtual_time.loop
        async def test_mine():
            assert type(asyncio.get_running_loop()).__name__ == "Mine"
    """

    output = pytest_run(tmp_path, source, "-v", *AUTO)

    assert "3 passed" in output
    assert "test_mine[first]" in output


WITHOUT = """
    import asyncio, threading
    from reactive_aio.testing import adversarial

    def test_virtual(virtual_time):
        virtual_time.run(asyncio.sleep(86400))

    @adversarial(seeds=3)
    async def test_adversarial():
        await asyncio.sleep(86400)

    def test_leak(no_leaks):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.costly
def test_without_pytest_asyncio(tmp_path: Path) -> None:
    output = pytest_run(tmp_path, WITHOUT, "-p", "no:asyncio", "-p", "no:anyio")

    assert "3 passed, 1 error" in output
    assert "LeakError" in output


@pytest.mark.costly
def test_with_the_plugin_of_anyio(tmp_path: Path) -> None:
    source = """
        import asyncio, pytest
        from reactive_aio.testing import VirtualTimeLoop

        @pytest.fixture
        def anyio_backend():
            return "asyncio", {"loop_factory": VirtualTimeLoop}

        @pytest.mark.anyio
        async def test_virtual(virtual_time, no_leaks):
            await virtual_time.advance(86400)
            assert virtual_time.now == 86400
    """

    assert "1 passed" in pytest_run(tmp_path, source, "-p", "no:asyncio")


@pytest.mark.costly
def test_a_test_that_anyio_runs_on_a_real_loop_fails_before_it_sleeps(tmp_path: Path) -> None:
    source = """
        import asyncio, pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_virtual(virtual_time):
            await asyncio.sleep(86400)
    """

    output = pytest_run(tmp_path, source, "-p", "no:asyncio")

    assert "1 failed" in output
    assert "anyio_backend" in output


@pytest.mark.costly
def test_a_loop_that_is_not_virtual_is_named(tmp_path: Path) -> None:
    source = """
        import asyncio
        def test_wrong(virtual_time):
            async def main():
                return virtual_time.now
            asyncio.run(main())
    """

    output = pytest_run(tmp_path, source, *AUTO)

    assert "1 failed" in output
    assert "virtual_time needs pytest-asyncio 1.4" in output


@pytest.mark.costly
def test_a_failure_under_a_seed_is_shown_with_the_seed(tmp_path: Path) -> None:
    source = """
        from reactive_aio.testing import adversarial
        @adversarial(seeds=[7])
        async def test_wrong():
            assert False
    """

    assert "AdversarialLoop(seed=7)" in pytest_run(tmp_path, source, *AUTO)


def test_the_kit_does_not_need_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import reactive_aio.testing as kit; kit.probe"

    subprocess.run([sys.executable, "-c", code], check=True)
