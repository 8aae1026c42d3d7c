"""The local properties of a thread, by which Spark places the jobs that it starts: their pool, their tags, and others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

if TYPE_CHECKING:
    from pyspark import SparkContext

OF_ONE_QUERY: Final = ("spark.sql.execution.id", "spark.sql.execution.root.id")
"""Those that belong to a query that is being run, and not to a thread."""


@frozen(eq=False)
class LocalProperties:
    """A copy of the properties that one thread had, for threads of this library."""

    _java: Any = None
    """A `java.util.Properties`; None for those of a thread without any."""

    @classmethod
    def here(cls, context: SparkContext) -> LocalProperties:
        """Copy those of the calling thread."""
        own: Any = context
        with suppress(Exception):  # the JVM is gone, and the first job will say so
            java = own._jsc.sc().getLocalProperties()
            if not java.isEmpty():  # a few quick calls, where to list the names would take ten milliseconds
                java = java.clone()
                for name in OF_ONE_QUERY:
                    java.remove(name)
                return cls(java)
        return cls()

    def enter(self, context: SparkContext) -> None:
        """Set them on the calling thread."""
        own: Any = context
        if self._java is not None:
            own._jsc.sc().setLocalProperties(self._java.clone())


NO_PROPERTIES: Final = LocalProperties()
