"""Questions to Spark that are asked when something is built or begins, and what is said where the session has ended."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ..errors import SparkJobError
from .calls import is_connect
from .told import told

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

STOPPED: Final = "its session has been stopped"


def is_stopped(at: SparkSession | SparkContext) -> bool:
    """Tell whether a session has been stopped in this process, without a call into the JVM."""
    known: Any = at  # what tells it is not of PySpark's public interface, and of another name with Spark Connect
    if is_connect(at):
        return bool(known.is_stopped)
    return getattr(known, "sparkContext", known)._jsc is None


def check_running(method: str, at: SparkSession | SparkContext) -> None:
    """Refuse a session that has been stopped."""
    if is_stopped(at):
        raise SparkJobError(f"{method}(): {STOPPED}: start another one, and use what is made with it")


@contextmanager
def asking(method: str, at: SparkSession | SparkContext) -> Generator[None]:
    """Refuse a session that has been stopped, and one whose JVM does not answer in the block."""
    from py4j.protocol import Py4JError, Py4JJavaError

    check_running(method, at)
    try:
        yield
    except Py4JJavaError:  # which is an answer
        raise
    except (Py4JError, OSError) as error:
        raise SparkJobError(f"{method}(): Spark does not answer: {told(error)}") from error
