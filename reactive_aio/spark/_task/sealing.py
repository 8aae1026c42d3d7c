"""A failure as a line of text, which Spark passes on with the text of the exception in a task.

The line is sealed by a secret of the driver. So only what a task of this driver has written is ever unpickled here.
"""

from __future__ import annotations

import hmac
import re
import secrets
import zlib
from base64 import b64decode, b64encode
from functools import cache
from typing import Final

from ..._remote.failures import is_whole

MARK: Final = "reactive_aio failure: "
MOST: Final = 8 << 10
"""Bytes of a failure that goes along. Of a larger one Spark's text is all there is."""
SIZE: Final = 32
"""Bytes of a seal, an HMAC-SHA256."""
LINE: Final = re.compile(re.escape(MARK) + r"([A-Za-z0-9+/]+={0,2})")


@cache
def own_secret() -> bytes:
    """Return the secret of this process. Tasks get it with their work."""
    return secrets.token_bytes(32)


def sealed(packed: bytes, secret: bytes) -> str | None:
    """Return a line that holds a packed failure, or None if the exception can't be restored, or is too large."""
    small = zlib.compress(packed)
    if len(small) > MOST or not is_whole(packed):
        return None
    return MARK + b64encode(_seal(small, secret) + small).decode()


def unsealed(text: str, secret: bytes) -> bytes | None:
    """Return the packed failure of the last line in a text that was sealed by the secret, or None.

    Earlier ones may be quoted by the message of an exception.
    """
    for line in reversed(LINE.findall(text)):
        data = b64decode(line[: len(line) - len(line) % 4])
        if hmac.compare_digest(data[:SIZE], _seal(data[SIZE:], secret)):
            return zlib.decompress(data[SIZE:])
    return None


def is_seal(note: str) -> bool:
    """Return whether a note is such a line."""
    return note.startswith(MARK)


def _seal(data: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, b"failure" + data, "sha256")
