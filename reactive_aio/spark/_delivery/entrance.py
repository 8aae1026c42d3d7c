"""The entrance of tasks: the listening socket of a region, on its event loop.

A connection has to prove that it is one of ours before anything that it sends is taken for more than bytes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from attrs import define, field

from ..._core.containers import new_list
from ..._remote.handshake import Guard, HandshakeError
from .._task.connecting import prepare

MANNERS: Final = 10.0
"""Seconds for a guest to prove that it knows the secret."""
MOST_STRANGERS: Final = 512
"""The most strangers: several times as many as a listening socket accepts at once, so that each guest is read first.

A guest has greeted with the seal of the secret, and is no stranger. Guests are not bounded, and none is turned out for others.
"""
AGAIN: Final = 1.0
"""Seconds until new connections are looked at again, where there was no file descriptor for one."""


@define(eq=False)
class Guest:
    """A connection that has not proved that it knows the secret."""

    entrance: Entrance
    connection: socket.socket
    guard: Guard
    deadline: asyncio.TimerHandle = field(init=False)

    def welcome(self) -> None:
        """Wait for what it has to say for itself."""
        loop = self.entrance.loop
        self.deadline = loop.call_later(MANNERS, self.turn_out)
        loop.add_reader(self.connection.fileno(), self._read)

    def turn_out(self) -> None:
        """Hang up."""
        self._forget()
        self.connection.close()

    def _forget(self) -> None:
        self.deadline.cancel()
        self.entrance.loop.remove_reader(self.connection.fileno())
        self.entrance.guests.remove(self)

    def _read(self) -> None:
        try:
            data = self.connection.recv(self.guard.wants)
            if not data:
                raise HandshakeError("it has hung up")
            if said := self.guard.feed(data):
                self.connection.send(said)  # so little finds room in a new connection
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.turn_out()
            return
        if self.guard.through:
            self._forget()
            self.entrance.entered(self.connection, self.guard.partition)


@define(eq=False)
class Entrance:
    """Accepts connections that know the secret. All others are closed, and nothing of theirs is unpickled."""

    loop: asyncio.AbstractEventLoop
    listening: socket.socket
    secret: bytes = field(repr=False)
    entered: Callable[[socket.socket, int], None]
    """Called for each accepted task, with the number of its partition."""
    guests: list[Guest] = field(init=False, factory=new_list)
    _again: asyncio.TimerHandle | None = field(init=False, default=None)

    def open(self) -> None:
        """Begin to listen."""
        self.listening.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no connection any more."""
        if self._again is not None:
            self._again.cancel()
        self.loop.remove_reader(self.listening.fileno())
        self.listening.close()
        for guest in tuple(self.guests):
            guest.turn_out()

    def _listen(self) -> None:
        self._again = None
        self.loop.add_reader(self.listening.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self.listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # there is no file descriptor for it, and it would be told of again at once
            self.loop.remove_reader(self.listening.fileno())
            self._again = self.loop.call_later(AGAIN, self._listen)
            return
        connection.setblocking(False)
        prepare(connection)
        strangers = [guest for guest in self.guests if not guest.guard.known]
        if len(strangers) >= MOST_STRANGERS:
            strangers[0].turn_out()
        guest = Guest(self, connection, Guard(self.secret))
        self.guests.append(guest)
        guest.welcome()
