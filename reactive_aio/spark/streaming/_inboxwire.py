"""The wire of an inbox: frames of the credit boundary between the tasks that write a stream and the event loop.

::

    task -> loop     OPEN     micro-batch; query, run and schema           first, and only once
                     READY    micro-batch, rows at hand                    may they be sent?
                     PART     micro-batch, rows; a stream of Arrow
                     LAST     micro-batch                                  that was all
                     BEAT     micro-batch                                  every five seconds: it is alive

    loop -> task     CHUNK    detail: rows to leave out                    begin, behind what an earlier attempt has sent
                     CREDIT   rows that may be sent
                     STOP     all has arrived, or no more is wanted
                     FAILED   why                                          the task is to fail

    driver -> loop   COMMIT   micro-batch; query, run, rows by partition   all tasks have ended well: is it consumed?
                     ABORT    the same                                     they have not

    loop -> driver   STOP     it has been consumed
                     FAILED   why not

It begins with the handshake of `_remote.handshake`, by which the ends prove who they are, and a task names its
partition. Everything but rows is JSON. Nothing is unpickled at either end. A task gets credit only for rows that it
has, so that no credit is idle.
"""

from __future__ import annotations

import json
from typing import Any, Final

from attrs import asdict, frozen

from ..._remote.frames import Frame

OPEN: Final = 16
COMMIT: Final = 17
ABORT: Final = 18


@frozen
class Delivery:
    """The name of one delivery of a micro-batch. A query that begins again delivers it anew, in another run."""

    query: str
    run: str
    batch: int


def frame(kind: int, delivery: Delivery, **more: Any) -> Frame:
    """Make a message about a delivery."""
    return Frame(kind, delivery.batch, pickled=json.dumps({**asdict(delivery), **more}).encode())


def named(said: Frame) -> tuple[Delivery, dict[str, Any]]:
    """Return the delivery that a frame is about, and the other fields of the frame."""
    more: dict[str, Any] = json.loads(said.pickled)
    return Delivery(str(more.pop("query")), str(more.pop("run")), int(more.pop("batch"))), more
