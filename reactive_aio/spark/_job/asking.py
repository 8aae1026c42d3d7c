"""Questions to Spark when something is built or begins, and the errors for a session that has ended."""

from __future__ import annotations

from contextlib import AbstractContextManager
from os import fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from attrs import frozen

from ...errors import SparkJobError
from .calls import is_connect
from .told import told

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

STOPPED: Final = "its session has been stopped"


def is_stopped(at: SparkSession | SparkContext) -> bool:
    """Return whether a session has been stopped in this process, without a call into the JVM."""
    known: Any = at  # what tells it is not of PySpark's public interface, and of another name with Spark Connect
    if is_connect(at):
        return bool(known.is_stopped)
    return getattr(known, "sparkContext", known)._jsc is None


def answers(session: SparkSession) -> bool:
    """Return whether Spark answers. If it does, an error of the network or of a file is not its own."""
    try:
        session.conf.get("spark.app.name", "")  # unlike `version`, which PySpark keeps
    except Exception:
        return False
    return True


def check_text(method: str, name: str, text: str) -> None:
    """Raise for a text that can't be sent to the JVM: half of a pair that stands for one character.

    The connection would break, as if Spark did not answer.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{method}({name}={text!r}): {name} has no UTF-8: {error.reason}") from error


def text_of_path(path: object) -> str | None:
    """Return the text of a path. Return None for anything else, such as a path in bytes.

    The text of a path object is what it gives to `os.fspath`: ``str()`` of an entry of `os.scandir` is another text.
    """
    given: Any = path
    try:
        text = cast("str | bytes", fspath(given))
    except TypeError:
        return None
    return text if isinstance(text, str) else None


def check_running(method: str, at: SparkSession | SparkContext) -> None:
    """Raise if a session has been stopped."""
    if is_stopped(at):
        raise SparkJobError(f"{method}(): {STOPPED}. Start another session, and make the data with it")


@frozen
class asking(AbstractContextManager[None]):  # noqa: N801 - it reads as what is done in the block
    """Refuses a session that has been stopped, and one whose JVM does not answer in the block.

    No generator, which would set the traceback of what leaves the block, and not all let that be set.
    """

    method: str
    at: SparkSession | SparkContext

    def __enter__(self) -> None:
        check_running(self.method, self.at)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError

        # An exception of Java is an answer.
        if isinstance(error, (Py4JError, OSError)) and not isinstance(error, Py4JJavaError):
            raise SparkJobError(f"{self.method}(): Spark does not answer: {told(error)}") from error
