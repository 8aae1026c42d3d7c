"""The daemon that forks the workers, played with by hand and in a session."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.machinery import FileFinder
from pathlib import Path
from typing import Any
from zipfile import ZipFile
from zipimport import zipimporter

import pytest
from attrs import define

from tests.spark.waiting import LIMIT, until

pytest.importorskip("pyspark")

from reactive_aio.spark.daemon import put_aside

SECRET = b"secret"
WORKER = """
import sys

def main(infile, outfile):
    inherited = [name for name in ("pyspark.worker", "pyarrow") if name in sys.modules]
    import pyarrow
    outfile.write(f"{inherited}\\n".encode())
    sys.exit(1)  # as behind a task that fails
"""
"""A worker that says what it has inherited."""


@define
class Daemon:
    """A daemon, and the port on which it is asked for workers."""

    process: asyncio.subprocess.Process
    port: int

    async def worker(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Path]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return reader, writer, Path(f"/proc/{int.from_bytes(await reader.readexactly(4))}")

    async def said(self) -> str:
        """Return what a new worker says, which then ends."""
        reader, writer, process = await self.worker()
        await authenticate(reader, writer)
        said = (await reader.readline()).decode()
        writer.close()
        await gone(process)
        return said


@asynccontextmanager
async def daemon(module: str, **variables: str) -> AsyncGenerator[Daemon]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "reactive_aio.spark.daemon", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": SECRET.decode(), "SPARK_REUSE_WORKER": "1", **variables},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield Daemon(process, int.from_bytes(await process.stdout.readexactly(4)))
    process.stdin.close()
    assert b"" == (await process.communicate())[1]


async def authenticate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(len(SECRET).to_bytes(4) + SECRET)
    assert b"ok" == (await reader.readexactly(6))[4:]


async def gone(process: Path) -> None:
    await until(lambda: not process.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the worker in /proc")
async def test_a_worker_ends_without_a_word_when_spark_hangs_up_on_it() -> None:
    async with daemon("pyspark.worker") as ours:
        for at_work in (False, True):
            reader, writer, process = await ours.worker()
            if at_work:
                await authenticate(reader, writer)  # and now it waits for a task
            writer.close()
            await gone(process)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the worker in /proc")
async def test_a_worker_inherits_what_one_before_it_had_to_import(tmp_path: Path) -> None:
    (tmp_path / "pyspark_worker_of_a_test.py").write_text(WORKER)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    async with daemon("pyspark_worker_of_a_test", PYTHONPATH=path) as ours, asyncio.timeout(LIMIT):
        assert "['pyspark.worker']\n" == await ours.said()
        # A worker that ends because this side has hung up may not get as far as to report what it has imported.
        while "['pyspark.worker', 'pyarrow']\n" != await ours.said():
            pass


def test_a_worker_does_not_look_through_the_archives_that_the_daemon_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipFile(tmp_path / "a.zip", "w"):
        pass
    found = {"a.zip": zipimporter(str(tmp_path / "a.zip")), "a folder": FileFinder(str(tmp_path))}
    monkeypatch.setattr(sys, "path_importer_cache", found)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process goes on to collect

    put_aside()

    assert ["a folder"] == [*found]


def test_a_worker_does_not_look_through_the_objects_that_it_has_inherited(sc: Any) -> None:
    def aside(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    # The worker may have imported more by itself, so only what the daemon had is counted: PySpark's modules at least.
    assert sc.parallelize([0], 1).map(aside).first() > 10_000


def test_a_worker_does_not_look_through_a_module_that_a_task_before_has_imported(sc: Any) -> None:
    def looked_through(_: int) -> tuple[bool, bool]:
        import gc
        import sys

        known = "xml.dom.minidom" in sys.modules
        import xml.dom.minidom

        return known, any(each is vars(xml.dom.minidom) for each in gc.get_objects())

    def run() -> tuple[bool, bool]:
        found: list[tuple[bool, bool]] = sc.parallelize([0], 1).map(looked_through).collect()  # to its end
        return found[0]

    found = run()
    while not found[0]:  # the task may be the first one of another worker
        found = run()

    assert (True, False) == found
