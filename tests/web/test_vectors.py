"""The protocol `reactive-streams.v1` by vectors: what one side says to what it hears. JavaScript runs the same ones."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from reactive_aio import Flow, hooks
from reactive_aio.errors import ProtocolViolation
from reactive_aio.testing import run_virtual
from reactive_aio.web import Connection, DisconnectedError, RemoteError, StreamError
from reactive_aio.web._connection import Limits, Offers
from reactive_aio.web._frames import FrameError, Message

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text("utf-8"))["vectors"]

OFFERS: Offers = {
    "count": Flow.range,
    "never": lambda _: Flow.never(),
    "echo": lambda args: Flow.from_iterable(args or []),
    "bytes": lambda args: Flow.from_iterable([bytes.fromhex(each) for each in args]),
    "failing": lambda _: Flow.error(LookupError("a secret")),
    "telling": lambda _: Flow.error(StreamError("come back later")),
}

NOTHING: dict[str, object] = {"say": [], "took": [], "ended": None, "closes": None}
"""The expected results of a step that names none."""


def shown(message: Any) -> Any:
    """Return what a vector has for an element, or for a message."""
    return {"hex": message.hex()} if isinstance(message, bytes) else message


@define(eq=False)
class Side:
    """The side that is looked at, and what comes of the steps."""

    connection: Connection = field(init=False)
    said: list[Any] = field(init=False, factory=list[Any])
    took: list[Any] = field(init=False, factory=list[Any])
    ended: object = field(init=False, default=None)
    closes: int | None = field(init=False, default=None)
    reading: asyncio.Task[None] | None = field(init=False, default=None)

    async def send(self, message: Message) -> None:
        self.said.append(json.loads(message) if isinstance(message, str) else shown(message))

    async def read(self, stream: str, prefetch: int, args: object = None) -> None:
        try:
            await self.connection.read(stream, args, prefetch=prefetch).for_each(self.take)
            self.ended = "complete"
        except RemoteError as error:
            self.ended = {"error": str(error)}
        except ProtocolViolation:
            self.ended = "violation"
        except DisconnectedError:
            self.ended = "disconnected"

    async def take(self, item: object) -> None:
        self.took.append(shown(item))

    def hear(self, message: Message) -> None:
        try:
            self.connection.hear(message)
        except FrameError as error:
            self.closes = error.code

    async def step(self, step: dict[str, Any]) -> None:
        match step:
            case {"hear": frame}:
                self.hear(json.dumps(frame, ensure_ascii=False))
            case {"hear_text": text}:
                self.hear(text)
            case {"hear_hex": text}:
                self.hear(bytes.fromhex(text))
            case {"hear_both": frames}:
                for frame in frames:
                    self.hear(json.dumps(frame))
            case {"read": arguments}:
                self.reading = asyncio.create_task(self.read(**arguments))
            case {"leave": _}:
                assert self.reading is not None
                self.reading.cancel()
            case _:
                assert step["end"]
                self.connection.close()
        await asyncio.sleep(1.0)  # of virtual time: until all is quiet

    def since(self) -> dict[str, object]:
        """Return what has come since this was asked last."""
        found = {"say": self.said, "took": self.took, "ended": self.ended, "closes": self.closes}
        self.said, self.took, self.ended, self.closes = [], [], None, None
        return found


async def played(vector: dict[str, Any]) -> None:
    side, setup = Side(), vector.get("setup", {})
    takes = Limits(setup.get("frame", 1_048_576), setup.get("credit", 2**53 - 1))
    side.connection = Connection(side.send, OFFERS, setup.get("streams", 100), takes)
    await side.connection.greet()
    assert [{"type": "limits", "frame": takes.frame, "credit": takes.credit}] == side.since()["say"]
    other = vector.get("limits", {"type": "limits"})
    if other is not None:
        await side.step({"hear": other})
    for step in vector["steps"]:
        await side.step(step)
        expected = {"say": [], "took": [], "ended": None, "closes": None} | step
        assert expected == side.since() | {
            name: step[name] for name in step.keys() - {"say", "took", "ended", "closes"}
        }
    await side.connection.settle()
    if side.reading is not None:
        with suppress(asyncio.CancelledError):
            await side.reading


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_a_side_says_what_the_vector_has(vector: dict[str, Any]) -> None:
    with hooks.using(on_error_dropped=lambda _: None):
        run_virtual(played(vector))


def test_no_two_vectors_have_one_name() -> None:
    names = [vector["name"] for vector in VECTORS]

    assert sorted(set(names)) == sorted(names)
