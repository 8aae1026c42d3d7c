"""Spark's text for a failure. An exception of py4j asks the JVM for its message, so all of it belongs on a thread."""

from __future__ import annotations

import re
from itertools import dropwhile, islice, takewhile
from typing import Any, Final

from py4j.protocol import Py4JNetworkError

from ..._core.guard import FAILURES, brief
from ..._core.notes import notes_of, root_of, set_cause
from ..._remote.failures import unpack
from ...errors import SparkJobError
from .._task.failures import ADVICE
from .._task.sealing import is_seal, own_secret, unsealed

TRACEBACK: Final = "Traceback (most recent call last):"
BEGINS: Final = re.compile(r"(\s*\+ Exception Group )?" + re.escape(TRACEBACK) + "$")
OF_A_GROUP: Final = re.compile(r"^  [|+] ", re.MULTILINE)
"""The beginning of the lines of an exception group. Those of its members have more in front."""
CAUSED: Final = "Caused by: "
ROOM: Final = (
    "Rows need several times their size there: set spark.driver.memory, and on a cluster spark.executor.memory"
)
TOO_SMALL: Final = f"The heap of Spark's JVM is too small. {ROOM}"
ENDED: Final = (
    "Spark's JVM can't be reached: it has ended, or its SparkContext was stopped. Its log says why. "
    f"A common cause is a heap that is too small. {ROOM}"
)
ADVISED: Final = {
    "ModuleNotFoundError: No module named": ADVICE,
    "SparkContext was shut down": ENDED,
    "java.lang.OutOfMemoryError": TOO_SMALL,
}
"""Advice about a failure, by the text that Spark has for it."""
IN_A_WORKER: Final = "An exception was thrown from the Python worker:"
JAVA_TYPE: Final = re.compile(r"^(\w+\.)+[\w$]+: ")


def text_of(error: BaseException) -> str:
    """Return the whole text, or an empty one if the JVM is gone or does not answer."""
    try:
        return str(error).strip()
    except FAILURES:
        return ""


def told(error: BaseException, context: Any = None) -> str:
    """Return the failure and its cause in one line. ``context`` is that of the session, which may have been stopped."""
    if context is not None and context._jsc is None:
        return "its session has been stopped"
    if (original := original_of(error)) is not None:
        return f"{IN_A_WORKER} {brief(original)}"
    line = _line(text_of(error)) or type(error).__name__
    cause = _cause(error)
    return line if JAVA_TYPE.sub("", cause) in line else f"{line} (caused by {cause})"


def original_of(error: BaseException) -> BaseException | None:
    """Return the exception that a task of a frame of ours has raised, if Spark's text for the failure holds it."""
    packed = unsealed(text_of(error), own_secret())
    return None if packed is None else unpack(packed)


def failure_of(what: str, error: Exception, context: Any = None) -> BaseException:
    """Return the exception that a task of a frame of ours has raised, or a SparkJobError with the notes of the task's exception.

    The error of Spark is the cause of either, or of the first cause that it has.
    """
    if (original := original_of(error)) is not None:
        set_cause(root_of(original), error)
        return original
    failure = SparkJobError(f"{what}: {told(error, context)}")
    failure.__cause__ = error
    for note in notes_in(error):
        failure.add_note(note)
    if isinstance(error, (OSError, Py4JNetworkError)):
        failure.add_note(ENDED)
    for text, advice in ADVISED.items():
        if text in str(failure):
            failure.add_note(advice)
    return failure


def notes_in(error: BaseException) -> list[str]:
    """Return the notes of a Python exception in a task, such as its operator.

    If Spark's text does not hold the exception, they are the lines after it.
    """
    if (original := original_of(error)) is not None:
        return notes_of(original)
    lines = _lines(text_of(error))
    tracebacks = _tracebacks(lines)
    if not tracebacks:
        return []
    rest = dropwhile(lambda line: not line or line[0].isspace(), lines[tracebacks[-1] + 1 :])
    notes = takewhile(lambda line: line and not line[0].isspace(), islice(rest, 1, None))
    return [note for note in notes if not is_seal(note)]


def _lines(text: str) -> list[str]:
    """Return the lines of a text, those of an exception group as those of any other exception."""
    return OF_A_GROUP.sub("", text).splitlines() or [""]


def _tracebacks(lines: list[str]) -> list[int]:
    """Return where Python's tracebacks begin. Those of the members of a group do not count."""
    return [at for at, line in enumerate(lines) if line.endswith(TRACEBACK) and not line.lstrip().startswith("|")]


def _line(text: str) -> str:
    """Return the first line of a text, and the line of the last Python exception in it."""
    lines = _lines(text)
    if len(lines) > 1 and lines[1].startswith(": "):
        lines = [lines[1][2:], *lines[2:]]  # behind the call that py4j made is what the JVM says
    elif len(lines) > 1 and lines[0].endswith(" Trace:"):
        lines = lines[1:]  # the call did not reach the JVM's method, and py4j itself says why
    first = BEGINS.sub("", lines[0]).rstrip()
    tracebacks = _tracebacks(lines)
    if tracebacks:
        raised = next((line for line in lines[tracebacks[-1] + 1 :] if line and not line[0].isspace()), "")
        return f"{first} {raised}".strip()
    return f"{first} {lines[-1]}" if first.endswith(":") and len(lines) > 1 else first


def _cause(error: BaseException) -> str:
    """Return the text of the first cause, if known. PySpark keeps the causes of some exceptions only as text."""
    root: Any = error
    while (before := getattr(root, "_cause", None)) is not None:
        root = before
    if root is not error:
        return _line(text_of(root))
    causes = [line for line in text_of(error).splitlines() if line.startswith(CAUSED)]
    return _line(causes[-1].removeprefix(CAUSED)) if causes else ""
