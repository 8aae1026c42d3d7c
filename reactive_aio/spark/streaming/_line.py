"""How a process of a streaming query finds the event loop: by options, which Spark keeps as texts."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from ...errors import DriverUnreachableError, SparkJobError, UnsupportedOnSparkError
from .._job.asking import asking
from .._job.calls import is_connect
from .._task.connecting import Address, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REGISTERED: Final[WeakSet[SparkSession]] = WeakSet()
"""The sessions that know the format. Spark warns when a format is registered again."""


def check_classic(method: str, data: object) -> None:
    """Raise for a session of Spark Connect, and for a frame of one."""
    if is_connect(data):
        raise UnsupportedOnSparkError(
            f"{method}() needs a classic session: Spark Connect runs queries on a server, which may not "
            "reach this process. Build the session with .master(...), not with .remote(...)"
        )


def register(session: SparkSession) -> None:
    """Register the format ``reactive_aio`` in a session, and make that the active session of the calling thread.

    Feeds and inboxes do so for their own sessions. Before you call
    ``frame.writeStream.format("reactive_aio").options(**inbox.options).start()``, call this on the same thread. Spark
    looks for the format of a writing query in the active session. It blocks for a call into the JVM.
    """
    from ._datasource import FlowSource

    check_classic("register", session)
    own: Any = session
    with asking("register", session):
        if session not in REGISTERED:
            session.dataSource.register(FlowSource)
            REGISTERED.add(session)
        own._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(own._jsparkSession)


def option(options: Mapping[str, str], name: str) -> str:
    """Return an option. Spark does not keep the case of its name."""
    for key, value in options.items():
        if key.lower() == name:
            return value
    raise SparkJobError(
        f"format('reactive_aio') lacks the option {name}. Pass Feed.options to read, or Inbox.options to write"
    )


def dial(options: Mapping[str, str], whom: str, partition: int = 0, attempt: int = 0) -> socket.socket:
    """Connect to the event loop, with a mutual proof of the secret."""
    host, _, port = option(options, "address").rpartition(":")
    address = Address(host, int(port), bytes.fromhex(option(options, "secret")))
    try:
        return connect(address, partition, attempt)
    except DriverUnreachableError as error:
        raise DriverUnreachableError(f"{whom} is closed or can't be reached: {error}") from None
    except OSError as error:
        raise SparkJobError(f"{whom} is closed: {error}") from None
