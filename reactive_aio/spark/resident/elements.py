"""Pickling of elements between an event loop and Spark's workers, which import neither's main module."""

from __future__ import annotations

import pickle
from typing import Any

from pyspark import cloudpickle as _untyped

from ...remote.pickling import MAIN, Buffers, aside

_cloudpickle: Any = _untyped


def dumps(value: object, buffers: Buffers) -> bytes:
    """Pickle elements: by value what belongs to the main module, or can't be imported at all."""
    first = len(buffers)
    callback = aside(buffers)
    try:
        data = pickle.dumps(value, 5, buffer_callback=callback)
        # Where these bytes mean something else, nothing is lost by pickling again.
        if MAIN not in data:
            return data
    except Exception:  # whatever a class does when it is pickled
        pass
    del buffers[first:]
    by_value: bytes = _cloudpickle.dumps(value, protocol=5, buffer_callback=callback)
    return by_value
