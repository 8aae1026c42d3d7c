"""The Spark engine: regions that run in the Python workers of a cluster. Nothing else imports PySpark.

A region becomes a job. Each of its tasks connects to the event loop of the subscriber and pushes chunks of
elements, never more than it was granted; that is the *credit boundary*.

`source` is the flow's side; `subscription`, `delivery` (with its two kinds, `ordered` and `unordered`), `slots`
and `link` are the loop's; `job` makes all calls into the JVM, on threads; `worker` and `rows` run in the tasks;
`connecting`, `failures` and `pickling` are what both sides agree on; what they say to each other is in `remote.frames`.
`resident` has the regions that the loop feeds, whose tasks come in by the `entrance`.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("this needs PySpark, which is not installed: pip install 'reactive_aio[spark]'")
