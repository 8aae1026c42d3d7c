"""Flows from sockets, files and processes and into them, under demand, on the streams of anyio and asyncio.

Data is read when it is requested, so a reader that stops also stops the sender. Each write is awaited.
"""

from .._bytes import TooLargeError as TooLargeError
from .._bytes import decompress as decompress
from .._bytes import json_lines as json_lines
from .._bytes import split_lines as split_lines
from ._files import read_chunks as read_chunks
from ._files import read_lines as read_lines
from ._files import tail as tail
from ._files import write_file as write_file
from ._processes import ProcessError as ProcessError
from ._processes import from_process as from_process
from ._sockets import Peer as Peer
from ._sockets import Server as Server
from ._sockets import connect as connect
from ._sockets import connect_unix as connect_unix
from ._sockets import serve as serve
from ._sockets import serve_unix as serve_unix
from ._streams import from_stream as from_stream
from ._streams import send_to as send_to
