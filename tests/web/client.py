"""A client of an ASGI application, without a server: it says how many messages it takes before it stalls or leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from reactive_aio.web import EventStream, FlowResponse

Messages = list[dict[str, Any]]


@define(eq=False)
class Client:
    """Asks once, and keeps what it is sent."""

    leaves_after: int | None = None
    """How many messages it takes before it disconnects."""
    stalls_after: int | None = None
    """How many it takes before it reads no more."""
    headers: list[tuple[bytes, bytes]] = field(factory=list[tuple[bytes, bytes]])
    method: str = "GET"
    messages: Messages = field(init=False, factory=list[dict[str, Any]])
    times: list[float] = field(init=False, factory=list[float])
    _gone: asyncio.Event = field(init=False, factory=asyncio.Event)

    async def ask(self, app: FlowResponse | EventStream) -> None:
        await app({"type": "http", "method": self.method, "headers": self.headers}, self._receive, self._send)

    async def _receive(self) -> Mapping[str, object]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, object]) -> None:
        if self._gone.is_set():
            return  # as servers do
        if len(self.messages) == self.stalls_after:
            await asyncio.Event().wait()
        self.messages.append(message)
        self.times.append(asyncio.get_running_loop().time())
        if len(self.messages) == self.leaves_after:
            self._gone.set()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def chunks(self) -> list[bytes]:
        return [message["body"] for message in self.messages if message.get("body")]

    @property
    def complete(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("more_body") is False
