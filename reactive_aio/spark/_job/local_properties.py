"""The local properties of a thread, by which Spark places the jobs that it starts: their pool, their tags, and others.

Spark runs a query with the settings of its session, such as the policies for dates and for equal keys of a map. It makes the
code of the tasks with the settings of the thread's active session. Tasks look up some settings among the local properties.
Jobs of a flow are not queries. So the threads that start them get both here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from .once import once_for_each, scala_context, settings

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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
        with suppress(Exception):  # the JVM is gone, and the first job will say so
            java = scala_context(context).getLocalProperties()
            if not java.isEmpty():  # a few quick calls, where to list the names would take ten milliseconds
                java = java.clone()
                for name in OF_ONE_QUERY:
                    java.remove(name)
                return cls(java)
        return cls()

    def with_settings(self, session: SparkSession) -> LocalProperties:
        """Add the settings that a session has now, as Spark does for a query."""
        jvm = _known(session.sparkContext)
        java = jvm.properties() if self._java is None else self._java.clone()
        java.putAll(jvm.as_java(settings(session).getAllConfs()))
        return LocalProperties(java)

    def enter(self, context: SparkContext) -> None:
        """Set them on the calling thread."""
        if self._java is not None:
            scala_context(context).setLocalProperties(self._java.clone())


def activate(session: SparkSession) -> None:
    """Make a session the active one of the calling thread, which has to be one of this library."""
    known: Any = session
    _known(session.sparkContext).activate(known._jsparkSession)


@frozen(eq=False)
class Known:
    """Classes and methods of the JVM."""

    properties: Any
    as_java: Any
    """Makes a map of Scala's one of Java's."""
    activate: Any


@once_for_each
def _known(context: SparkContext) -> Known:
    own: Any = context
    jvm = own._jvm
    return Known(
        jvm.java.util.Properties,
        jvm.scala.jdk.javaapi.CollectionConverters.asJava,
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession,
    )


NO_PROPERTIES: Final = LocalProperties()
