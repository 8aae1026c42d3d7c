"""How values of somebody else's are shown."""

from __future__ import annotations


def shown(value: object) -> str:
    """Show a value, whatever its repr does.

    >>> shown([1])
    '[1]'
    """
    try:
        return repr(value)
    except BaseException as error:  # a report must come, whatever the class of what is raised
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
