"""How the two ends of a connection prove to each other that they know the secret, before anything is unpickled.

::

    worker -> loop   GREETING   magic and version, partition, attempt, nonce, seal
    loop -> worker   REPLY      magic and version, nonce, proof
    worker -> loop   PROOF      proof

A seal is the HMAC-SHA256, by the secret, of the greeting before it. It proves nothing, since it could have been overheard. But a
stranger that only connects has none, so that the loop can tell guests from strangers before it has to wait for a proof.

A proof is the HMAC-SHA256, by the secret, of the name of the side that gives it and of the greeting and the reply's nonce.
So the secret itself never travels, a proof is of no use for any other connection, and neither side believes a
stranger that has got hold of the other's address.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from typing import Final

from attrs import define, field

MAGIC: Final = b"rea5"
"""Says that it is us, and which version of the credit boundary: of the handshake and of all frames."""

NONCE: Final = 32
UNSEALED: Final = struct.Struct(f"!4sII{NONCE}s")
"""Magic, partition, attempt, nonce: all of a greeting that versions have in common."""
GREETING: Final = struct.Struct(f"!{UNSEALED.size}s32s")
"""That, and the seal."""
REPLY: Final = struct.Struct(f"!4s{NONCE}s32s")
"""Magic, nonce, proof."""
PROOF: Final = struct.Struct("!32s")


class HandshakeError(ConnectionError):
    """The other side does not know the secret, or has another version."""


def _proof(secret: bytes, side: bytes, greeting: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, side + greeting + nonce, "sha256")


def _sealed(secret: bytes, greeting: bytes) -> bytes:
    return greeting + hmac.digest(secret, b"greeting" + greeting, "sha256")


def _check_magic(magic: bytes) -> None:
    if magic != MAGIC:
        versions = f"it sends {magic!r}, but this side sends {MAGIC!r}"
        if magic[:3] != MAGIC[:3]:
            raise HandshakeError(f"the other side speaks another protocol: {versions}")
        raise HandshakeError(
            f"the other side speaks another version of the credit boundary: {versions}. Install the same version of reactive_aio on both sides"
        )


@define
class Greeter:
    """The side of the worker, which connects: `greeting` goes out, `answer` is what to say to the reply."""

    secret: bytes = field(repr=False)
    partition: int
    attempt: int
    greeting: bytes = field(init=False)

    def __attrs_post_init__(self) -> None:
        greeting = UNSEALED.pack(MAGIC, self.partition, self.attempt, secrets.token_bytes(NONCE))
        self.greeting = _sealed(self.secret, greeting)

    def answer(self, reply: bytes) -> bytes:
        """Check the reply, of ``REPLY.size`` bytes, and return the proof. Raise HandshakeError if it is wrong."""
        magic, nonce, proof = REPLY.unpack(reply)
        _check_magic(magic)
        if not hmac.compare_digest(proof, _proof(self.secret, b"loop", self.greeting, nonce)):
            raise HandshakeError("the other side does not know the secret of this flow")
        return _proof(self.secret, b"worker", self.greeting, nonce)


@define(eq=False)
class Guard:
    """The side of the loop, which accepts a worker that proves to know the secret. Feed it until it is ``through``."""

    secret: bytes = field(repr=False)
    through: bool = field(init=False, default=False)
    known: bool = field(init=False, default=False)
    """Whether the greeting had the seal of the secret, so that the worker is a guest and not a stranger."""
    partition: int = field(init=False, default=0)
    attempt: int = field(init=False, default=0)
    _got: bytes = field(init=False, default=b"")
    _expected: bytes | None = field(init=False, default=None)
    """The proof, once the reply is out; empty for a worker of another version, whose greeting may go on and which has none."""

    @property
    def wants(self) -> int:
        """The number of bytes to wait for. Reading more would take bytes that come after them."""
        if self._expected is not None:
            return PROOF.size - len(self._got)
        sealed = len(self._got) >= UNSEALED.size and self._got.startswith(MAGIC)
        return (GREETING if sealed else UNSEALED).size - len(self._got)

    def feed(self, data: bytes) -> bytes:
        """Take at most as many bytes as it ``wants``, and return the answer. Raise HandshakeError if they are wrong."""
        self._got += data
        if self._got[:3] != MAGIC[: min(3, len(self._got))] and self._expected is None:
            raise HandshakeError("the other side speaks another protocol")
        if self.wants:
            return b""
        got, self._got = self._got, b""
        if self._expected is None:
            return self._reply(got)
        if not self._expected:
            return b""
        if not hmac.compare_digest(got, self._expected):
            raise HandshakeError("the other side does not know the secret of this flow")
        self.through = True
        return b""

    def _reply(self, greeting: bytes) -> bytes:
        unsealed = greeting[: UNSEALED.size]
        magic, self.partition, self.attempt, _ = UNSEALED.unpack(unsealed)
        self.known = hmac.compare_digest(greeting, _sealed(self.secret, unsealed))
        nonce = secrets.token_bytes(NONCE)
        # A stranger, or a worker of another version, gets ours, so that it can say why it failed, and no proof of its is right.
        if self.known:
            self._expected = _proof(self.secret, b"worker", greeting, nonce)
        else:
            self._expected = secrets.token_bytes(32) if magic == MAGIC else b""
        return REPLY.pack(MAGIC, nonce, _proof(self.secret, b"loop", greeting, nonce))
