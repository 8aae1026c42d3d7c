"""How the two ends of a connection prove to each other that they know the secret, before anything is unpickled.

::

    worker -> loop   GREETING   magic and version, partition, attempt, nonce
    loop -> worker   REPLY      magic and version, nonce, proof
    worker -> loop   PROOF      proof

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

MAGIC: Final = b"rea4"
"""Says that it is us, and which version of the credit boundary: of the handshake and of all frames."""

NONCE: Final = 32
GREETING: Final = struct.Struct(f"!4sII{NONCE}s")
"""Magic, partition, attempt, nonce."""
REPLY: Final = struct.Struct(f"!4s{NONCE}s32s")
"""Magic, nonce, proof."""
PROOF: Final = struct.Struct("!32s")


class HandshakeError(ConnectionError):
    """The other side is not who it should be, or is of another version."""


def _proof(secret: bytes, side: bytes, greeting: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, side + greeting + nonce, "sha256")


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
        self.greeting = GREETING.pack(MAGIC, self.partition, self.attempt, secrets.token_bytes(NONCE))

    def answer(self, reply: bytes) -> bytes:
        """Check the reply, of ``REPLY.size`` bytes, and give the proof; raises HandshakeError."""
        magic, nonce, proof = REPLY.unpack(reply)
        _check_magic(magic)
        if not hmac.compare_digest(proof, _proof(self.secret, b"loop", self.greeting, nonce)):
            raise HandshakeError("the other side does not know the secret of this flow")
        return _proof(self.secret, b"worker", self.greeting, nonce)


@define(eq=False)
class Guard:
    """The side of the loop, which lets in who proves to know the secret: feed it until it is ``through``."""

    secret: bytes = field(repr=False)
    through: bool = field(init=False, default=False)
    partition: int = field(init=False, default=0)
    attempt: int = field(init=False, default=0)
    _got: bytes = field(init=False, default=b"")
    _expected: bytes | None = field(init=False, default=None)
    """The proof, once the reply is out."""

    @property
    def answered(self) -> bool:
        """Whether a greeting has come, and the reply been given."""
        return self._expected is not None

    @property
    def wants(self) -> int:
        """The bytes to wait for. To read more would take what comes behind."""
        return (GREETING.size if self._expected is None else PROOF.size) - len(self._got)

    def feed(self, data: bytes) -> bytes:
        """Take at most as many bytes as it ``wants``, and give what is to be said; raises HandshakeError."""
        self._got += data
        if self._got[:3] != MAGIC[: min(3, len(self._got))] and self._expected is None:
            raise HandshakeError("the other side speaks another protocol")
        if self.wants:
            return b""
        got, self._got = self._got, b""
        if self._expected is None:
            return self._reply(got)
        if not hmac.compare_digest(got, self._expected):
            raise HandshakeError("the other side does not know the secret of this flow")
        self.through = True
        return b""

    def _reply(self, greeting: bytes) -> bytes:
        magic, self.partition, self.attempt, _ = GREETING.unpack(greeting)
        nonce = secrets.token_bytes(NONCE)
        # A guest of another version gets ours, so that it can say why it failed, and no proof of its is right.
        self._expected = _proof(self.secret, b"worker", greeting, nonce) if magic == MAGIC else secrets.token_bytes(32)
        return REPLY.pack(MAGIC, nonce, _proof(self.secret, b"loop", greeting, nonce))
