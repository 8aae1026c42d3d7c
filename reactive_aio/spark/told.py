"""What Spark says of a failure; what py4j raises asks the JVM for its message, so all of it belongs on a thread."""

from __future__ import annotations

from typing import Any


def text_of(error: Exception) -> str:
    """Give all of it; nothing if the JVM is gone."""
    try:
        return str(error).strip()
    except Exception:
        return ""


def told(error: Exception, context: Any = None) -> str:
    """Say it in a line; ``context`` is that of the session, which may have been stopped."""
    if context is not None and context._jsc is None:
        return "its session has been stopped"
    lines = text_of(error).splitlines() or [type(error).__name__]
    if len(lines) > 1 and lines[1].startswith(": "):
        return lines[1][2:]  # behind the call that py4j made is what the JVM says
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") else lines[0]
