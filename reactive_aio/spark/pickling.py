"""Pickling for Spark's workers and in them: neither side imports the other's main module.

PySpark's cloudpickle does it by value. A class that comes back is recognized and stays the class it was.
"""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle as _untyped

from ..remote.pickling import MAIN, Buffers, aside, by_reference

_cloudpickle: Any = _untyped


def dumps(value: object, buffers: Buffers) -> bytes:
    """Pickle elements: by value what belongs to the main module, or can't be imported at all."""
    first = len(buffers)
    try:
        data = by_reference(value, buffers)
        # Where these bytes mean something else, nothing is lost by pickling again.
        if MAIN not in data:
            return data
    except Exception:  # whatever a class does when it is pickled
        pass
    del buffers[first:]
    by_value: bytes = _cloudpickle.dumps(value, protocol=5, buffer_callback=aside(buffers))
    return by_value


def dumps_by_value(value: object) -> bytes:
    """Pickle a value, and by value what it refers to and can't be imported."""
    data: bytes = _cloudpickle.dumps(value)
    return data
