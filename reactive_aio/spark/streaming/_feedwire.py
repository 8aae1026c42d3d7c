"""The wire of a feed: the requests of a streaming query's processes to the event loop with the rows.

::

    query -> loop   BEGIN                                             where is the first row?
                    LATEST   offset, number of rows, 1 to wait        how far may a batch go that begins there?
                    FETCH    offset, offset                           the rows in between
                    COMMIT   offset                                   those before it are not needed any more

    loop -> query   DONE     length, and the answer: an offset, or a stream of Arrow
                    REFUSED  length, and why

It begins with the handshake of `_remote.handshake`, by which the ends prove who they are. Nothing is unpickled at
either.
"""

from __future__ import annotations

import struct
from typing import Final

QUESTION: Final = struct.Struct("!BQQQ")
ANSWER: Final = struct.Struct("!BQ")
OFFSET: Final = struct.Struct("!Q")

BEGIN: Final = 1
LATEST: Final = 2
FETCH: Final = 3
COMMIT: Final = 4

DONE: Final = 1
REFUSED: Final = 2
