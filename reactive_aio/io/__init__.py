"""Flows from sockets, files and processes and into them, under demand, on the streams of anyio and asyncio.

What is read is read when it is wanted, so a reader that stops stops the other side. What is written is awaited.
"""

from .._bytes import TooLargeError as TooLargeError
from .._bytes import decompress as decompress
from .._bytes import json_lines as json_lines
from .._bytes import split_lines as split_lines
