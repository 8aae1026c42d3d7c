"""The connection of a task to the event loop, as both ends make it."""

from __future__ import annotations

import socket
from typing import Final

from attrs import field, frozen

from ..remote.handshake import REPLY, Greeter

# A machine that vanishes says no goodbye; without these it would take hours to be noticed.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
PATIENCE: Final = 30.0
"""Seconds for the other machine to answer."""


@frozen
class Address:
    """Where the loop listens, and the secret that both ends know."""

    host: str
    port: int
    secret: bytes = field(repr=False)


def prepare(connection: socket.socket) -> None:
    """Have small frames go out at once, and a peer that has vanished noticed."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def connect(address: Address, partition: int, attempt: int) -> socket.socket:
    """Connect to the loop, and prove to each other to be who one says."""
    connection = socket.create_connection((address.host, address.port), PATIENCE)
    try:
        connection.settimeout(None)  # the loop may be held up for long, and is not gone for that
        prepare(connection)
        greeter = Greeter(address.secret, partition, attempt)
        connection.sendall(greeter.greeting)
        reply = b""
        while len(reply) < REPLY.size:
            if not (more := connection.recv(REPLY.size - len(reply))):
                raise ConnectionError("the event loop that this task is to work for has hung up")
            reply += more
        connection.sendall(greeter.answer(reply))
    except BaseException:
        connection.close()
        raise
    return connection
