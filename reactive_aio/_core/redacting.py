"""URLs as they may be shown: without parts that a service takes as proof of identity."""

from __future__ import annotations

import re
from typing import Final

URL: Final = re.compile(r"(?<![a-z0-9+.-])([0-9+.-]*[a-z][a-z0-9+.-]*://)(\S+)", re.IGNORECASE)
"""A URL. It is looked for only where a word begins, so that a long word is read once."""
HOST: Final = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?\W*")
"""A host with its port, and the quotes or brackets after a URL in a repr."""


def redacted(text: str) -> str:
    """Return a text with each URL cut to its scheme, host, port and path: a user, a password, a query or a fragment may be a secret.

    Where it can't be told which part is the host, only the scheme is left.

    >>> redacted("GET https://ann:secret@example.org:8443/a/b?token=secret failed")
    'GET https://example.org:8443/a/b?... failed'
    >>> redacted("ws://ann:sec/ret@example.org")
    'ws://...'
    """
    return URL.sub(_public, text) if "://" in text else text


def _public(found: re.Match[str]) -> str:
    scheme, rest = found.groups()
    place = re.split("[?#]", rest, maxsplit=1)[0]
    authority, slash, path = place.partition("/")
    host = authority.rpartition("@")[2]
    if "@" in path or not HOST.fullmatch(host):
        return f"{scheme}..."
    return f"{scheme}{host}{slash}{path}" + ("?..." if len(place) < len(rest) else "")
