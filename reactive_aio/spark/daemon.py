"""PySpark's daemon, whose workers end without a word when Spark hangs up on them: ``spark.python.daemon.module``.

Spark hangs up on the worker of a task that it has cancelled. PySpark has the worker find out when it next reads or writes,
and say on stderr that a pipe is broken; until then it goes on with what nobody wants. Here a thread of the worker
waits for that, and ends it. Tasks of this library see to it themselves, once they run. This is for all the others, such
as those before a shuffle, and for workers that are just being started.

A worker collects garbage behind each task, and looks at every object that it has inherited: that is most of what a small
task costs it. So the daemon puts its own objects aside before it forks.
"""

from __future__ import annotations

import gc
import socket

from pyspark import daemon

from ._task.watch import end_process, end_with, hung_up

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run one task; in the process that has been forked for it."""
    end_with(sock.fileno())
    try:
        return _worker(sock, authenticated)
    except BaseException:
        if hung_up(sock.fileno(), 0):
            end_process()
        raise


if __name__ == "__main__":
    daemon.worker = worker
    gc.collect()
    gc.freeze()
    daemon.manager()
