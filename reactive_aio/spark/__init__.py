"""The Spark engine: regions that run in the Python workers of a cluster. Nothing else imports PySpark.

A region becomes a job. Each of its tasks connects to the event loop of the subscriber and pushes chunks of elements,
never more than it has credit for. This is the *credit boundary*.

Its packages: `_source` reads, and has Spark run the operators that follow. `_delivery` brings the chunks of many tasks
to one subscriber, on the event loop. `_job` makes all calls into the JVM, on threads. `_task` runs in the Python
workers, and defines what both sides share. `_results` needs no connection from the workers. `_resident` has the regions
that the loop feeds. `sink` writes, and `streaming` is Structured Streaming in both directions. `session` makes a
session on this machine.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("this needs PySpark, which is not installed: pip install 'reactive_aio[spark]'")
