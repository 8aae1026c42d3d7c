"""Pickling by value, for functions and classes that the other side can't import.

PySpark's cloudpickle does it. A class that comes back is recognized and stays the class it was.
"""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle as _untyped

_cloudpickle: Any = _untyped


def dumps_by_value(value: object) -> bytes:
    """Pickle a value, and by value what it refers to and can't be imported."""
    data: bytes = _cloudpickle.dumps(value)
    return data
