"""Calls that two threads are inside of at the same time, however busy the machine is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType


def meet_inside(name: str, *calls: Callable[[], object]) -> None:
    """Make each call on a thread of its own; each stays inside the second function of that name until all are there.

    The first is the recorder's, which writes the call down before the second, the recorded object's own.
    """
    all_there = threading.Barrier(len(calls))

    def make(call: Callable[[], object]) -> None:
        entered = 0

        def enter(frame: FrameType, _event: str, _arg: object) -> None:
            nonlocal entered
            entered += frame.f_code.co_name == name
            if entered == 2:
                sys.settrace(None)
                all_there.wait(60)

        sys.settrace(enter)
        call()

    threads = [threading.Thread(target=make, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
