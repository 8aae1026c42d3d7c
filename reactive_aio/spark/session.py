"""A session on this machine, for examples and tests."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from ._job.asking import check_text

QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that starts twice as fast and computes more slowly. Rows of a DataFrame take up to twice as long."""
QUIET: Final = f"'-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}'"

OPTIONS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Over TCP a task waits 40 ms for the handshake with its Python worker.
    "spark.python.unix.domain.socket.enabled": "true",
    # A task that Spark kills, and that does not end by itself, is over within two seconds, and PySpark logs nothing of it.
    "spark.python.task.killTimeout": "10ms",
    "spark.python.daemon.module": "reactive_aio.spark.daemon",
}


def local_session(app_name: str, master: str | None = None, *, quick_start: bool = True, **conf: str) -> SparkSession:
    """Start a quiet session on this machine, or return the running one.

    ``master`` is a master of Spark: ``local[3]`` runs three tasks at a time and never retries one, ``local[3,4]`` tries
    up to four times. By default there is one slot more than there are cores. A flow leaves one slot free, for other
    flows that its subscriber may wait for. A task that waits for demand uses no core. The JVM starts quickly, because
    it uses only the simpler of its two compilers. With ``quick_start=False`` it has the flags of Spark, as on a
    cluster. It starts more slowly, and is faster at long work. Write further options with ``__`` for each dot:
    ``spark__sql__shuffle__partitions="4"``.
    """
    _check(app_name, master, quick_start, conf)
    # Else the workers run whatever python3 is on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark remarks on the name of the machine
    builder = SparkSession.builder.master(master or f"local[{_cores() + 1}]").appName(app_name)
    java = {"spark.driver.extraJavaOptions": f"{QUICK_START} {QUIET}" if quick_start else QUIET}
    given = {key.replace("__", "."): value for key, value in conf.items()}
    for name, value in {**OPTIONS, **java, **given}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Else the JVM goes first, and the daemon of its Python workers complains of a broken pipe now and then.
    atexit.register(_stop, session)
    return session


def _check(app_name: object, master: object, quick_start: object, conf: Mapping[str, object]) -> None:
    """Raise for a wrong argument. Spark would turn it into a text, or raise an error that does not name it."""
    if not isinstance(quick_start, bool):
        raise TypeError(f"local_session(quick_start={quick_start!r}): quick_start is True or False")
    texts = {"app_name": app_name, **({} if master is None else {"master": master})}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"local_session({name}={text!r}): {name} is a text, not {type(text).__name__}")
    for name, value in conf.items():
        if not isinstance(value, (str, int, float)):
            raise TypeError(f"local_session({name}={value!r}): an option is a text, not {type(value).__name__}")
    for name, value in {**texts, **conf}.items():
        check_text("local_session", name, str(value))


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _stop(session: SparkSession) -> None:
    with suppress(Exception):  # it has been stopped, or is gone
        session.stop()
