"""The connection of a task to the event loop, as both ends make it."""

from __future__ import annotations

import errno
import re
import socket
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from ..._remote.handshake import REPLY, Greeter, HandshakeError
from ...errors import DriverUnreachableError

if TYPE_CHECKING:
    from pyspark import SparkContext

HOST: Final = "spark.reactive_aio.host"
"""The option that says by what name the workers reach this machine, where that is not ``spark.driver.host``."""
PORTS: Final = "spark.reactive_aio.ports"
"""The option that says on which ports to listen, such as ``41000-41031``, where a firewall lets only some through."""

# A machine that vanishes says no goodbye; without these it would take hours to be noticed.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
PATIENCE: Final = 10.0
"""Seconds for the other machine to answer, and to be let in."""
PAUSE: Final = 0.05
"""Seconds until one that was turned out comes back."""


@frozen
class Address:
    """The address on which the loop listens, and the secret that both ends know."""

    host: str
    port: int
    secret: bytes = field(repr=False)


def listen(context: SparkContext) -> tuple[socket.socket, str]:
    """Listen for the tasks of a flow, and return the name by which they reach this machine; with calls into the JVM."""
    known: Any = context
    conf = known._conf  # getConf() copies all settings one by one, each by some calls into the JVM
    local = str(context.master).startswith("local")
    host = bare(conf.get(HOST, "") or ("127.0.0.1" if local else conf.get("spark.driver.host", "127.0.0.1")))
    bound = "127.0.0.1" if local and host == "127.0.0.1" else bare(conf.get("spark.driver.bindAddress", ""))
    for port in _ports(conf.get(PORTS, "") or "0"):
        try:
            return listen_on(bound, host, port), host
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(
                    f"the event loop can't listen for tasks on {bound or 'any address of this machine'} ({error}). Set "
                    f"spark.driver.bindAddress to an address of this machine, and {PORTS} to ports that it may use. Or read "
                    "without a connection, with wire='results'"
                ) from error
    raise OSError(
        f"no port of {PORTS}={conf.get(PORTS)} is free. Each running flow needs one, so add ports to the range"
    )


def listen_on(bound: str, host: str, port: int) -> socket.socket:
    """Listen at an address of this machine, any if it is empty, for those who connect to ``host``."""
    six = ":" in (bound or host)
    family = socket.AF_INET6 if six else socket.AF_INET
    both = six and bound in {"", "::"} and socket.has_dualstack_ipv6()
    return socket.create_server((bound, port), family=family, backlog=128, dualstack_ipv6=both)


def bare(host: str) -> str:
    """Return an address as sockets take it. Spark puts one of IPv6 in brackets."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


@define
class Listening(AbstractContextManager["Address | None"]):
    """Listens for a block and accepts nothing, so that connections of tasks are reset. None if that is impossible.

    No generator, which would set the traceback of what leaves the block, and not all let that be set.
    """

    context: SparkContext
    _lifeline: socket.socket | None = field(init=False, default=None)

    def __enter__(self) -> Address | None:
        try:
            self._lifeline, host = listen(self.context)
        except (OSError, ValueError):  # no port is free, or none is named: it would be of use, but is not needed
            return None
        return Address(host, self._lifeline.getsockname()[1], b"")

    def __exit__(self, *exc_info: object) -> None:
        if self._lifeline is not None:
            self._lifeline.close()


def _ports(text: str) -> range:
    """Read a port or a range of them."""
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text)
    if found is None:
        raise ValueError(f"{PORTS}={text}: set a port, or a range of ports such as 41000-41031")
    first = int(found[1])
    return range(first, int(found[2] or first) + 1)


def prepare(connection: socket.socket) -> None:
    """Send small frames at once, and notice a peer that has vanished."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def connect(address: Address, partition: int, attempt: int) -> socket.socket:
    """Connect to the loop, with a mutual proof of the secret.

    Where strangers crowd in, it may be turned out before its greeting is read. So it tries again for some seconds.
    """
    until = monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection((address.host, address.port), PATIENCE)
        except OSError as error:
            raise DriverUnreachableError(_unreachable(address, error)) from None
        try:
            return _introduced(connection, Greeter(address.secret, partition, attempt))
        except HandshakeError:
            raise
        except ConnectionError:
            if monotonic() > until:
                raise
            sleep(PAUSE)


def _introduced(connection: socket.socket, greeter: Greeter) -> socket.socket:
    try:
        connection.settimeout(None)  # the loop may be held up for long, and is not gone for that
        prepare(connection)
        connection.sendall(greeter.greeting)
        reply = b""
        while len(reply) < REPLY.size:
            if not (more := connection.recv(REPLY.size - len(reply))):
                raise ConnectionError("the event loop of this task has closed the connection")
            reply += more
        connection.sendall(greeter.answer(reply))
    except BaseException:
        connection.close()
        raise
    return connection


def _unreachable(address: Address, error: OSError) -> str:
    """Return one line that says which connection failed and what to do. The driver gets it as the error of the task."""
    return (
        f"a task on {socket.gethostname()} can't connect to the event loop at {address.host}:{address.port} "
        f"({error}). Set spark.driver.host or {HOST} to a host name that the workers can reach, and {PORTS} to "
        "ports that are open to them. For an inbox, set inbox(host=..., port=...). Or read without a connection, with "
        "Flow.from_spark(..., wire='results')"
    )


def unreachable(text: str) -> DriverUnreachableError | None:
    """Find in what Spark says of a failed job that its tasks could not connect, or were of another version."""
    found = re.search(rf"(?:{DriverUnreachableError.__name__}|{HandshakeError.__name__}): (.+)", text)
    return DriverUnreachableError(found[1]) if found else None
