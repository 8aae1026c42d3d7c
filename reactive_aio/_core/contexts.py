"""Contexts that may have been entered: a context can't be entered again below on the stack."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context


def run_in(context: Context, call: Callable[[], None]) -> bool:
    """Call in a context. Return False, and call nothing, if the context has been entered already."""
    try:
        context.run(call)
    except RuntimeError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:  # it comes out of the call
            raise
        return False
    return True
