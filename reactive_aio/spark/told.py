"""What Spark says of a failure, in a line."""

from __future__ import annotations


def told(error: Exception) -> str:
    """Give the first line; what py4j raises asks the JVM for its message, so it belongs on a thread."""
    try:
        text = str(error).strip()
    except Exception:
        text = ""  # the JVM may be gone
    return (text.splitlines() or [type(error).__name__])[0]
