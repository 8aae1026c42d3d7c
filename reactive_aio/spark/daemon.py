"""PySpark's daemon, whose workers end without a word when Spark hangs up on them: ``spark.python.daemon.module``.

Spark hangs up on the worker of a task that it has cancelled. A worker of PySpark notices that only at its next read or
write, and writes to stderr that a pipe is broken. Until then it goes on with useless work. Here a thread of the worker
waits for the end of the connection, and then ends the worker. Running tasks of this library check this themselves. The
thread is for all other tasks, such as those before a shuffle, and for workers that are starting.

A worker collects garbage after each task, and looks at every object that it has inherited. That is most of the cost of
a small task. So the daemon freezes its own objects before it forks. A worker does the same with the modules that a task
has imported.

A worker begins with imports: PySpark's own take 0.2 s of CPU, those of Arrow and pandas another 0.7 s. Spark starts a
new worker after each failed task. So the daemon imports them itself, and the workers inherit them: PySpark's worker at
once, and each of `COSTLY` as soon as a worker has needed it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from importlib import import_module
from mmap import mmap
from typing import Final
from zipimport import zipimporter

from pyspark import daemon

from ._task.watch import end_process, end_with, hung_up

COSTLY: Final = "numpy", "pyarrow", "pandas"
"""The modules that the daemon imports once a worker has. They can be imported before a fork, because Arrow's allocator
and numpy's BLAS handle their threads."""
NEEDED: Final = mmap(-1, len(COSTLY))
"""A byte for each of them, in memory that the daemon shares with its workers. A worker sets it."""

_worker = daemon.worker
_known: Final = [0]
"""The modules that had been imported when objects were last frozen."""


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run one task, in the process that was forked for it."""
    end_with(sock.fileno())
    try:
        return _worker(sock, authenticated)
    except BaseException:
        if hung_up(sock.fileno(), 0):
            end_process()
        raise
    finally:
        report()
        if len(sys.modules) > _known[0]:
            put_aside()


def report() -> None:
    """Set the bytes of the modules that this worker has imported."""
    for at, name in enumerate(COSTLY):
        if name in sys.modules:
            NEEDED[at] = 1


def prepare() -> None:
    """Import the modules that workers have needed, in the daemon, before it forks."""
    needed = [name for at, name in enumerate(COSTLY) if NEEDED[at] and name not in sys.modules]
    if needed:
        for name in needed:
            import_module(name)
        put_aside()


def put_aside() -> None:
    """Freeze the current objects and close the archives, so that workers do not look through them again."""
    # A worker begins by `invalidate_caches`, and up to Python 3.12 each importer of pyspark.zip then reads its whole list.
    for path, importer in [*sys.path_importer_cache.items()]:
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
    gc.collect()
    gc.freeze()
    _known[0] = len(sys.modules)


if __name__ == "__main__":
    import_module("pyspark.worker")
    daemon.worker = worker
    os.register_at_fork(before=prepare)
    put_aside()
    daemon.manager()
