"""A task over the batches of a frame, as a node on top of the plan that the frame has already.

`mapInArrow` makes a frame of a frame, and Spark analyses, optimises and compiles the whole again. For some thousand rows
that takes longer than to read them. The node here is the one that Spark would plan, made by hand over the physical plan.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from attrs import frozen
from pyspark.sql.types import LongType, StructField, StructType
from pyspark.sql.udf import _wrap_function  # pyright: ignore[reportPrivateUsage] - what `mapInArrow` wraps functions with
from pyspark.util import PythonEvalType

from .._job.once import caches, once_for_each

if TYPE_CHECKING:
    from pyspark import SparkContext

    from .._task.worker import RegionTask

# `Any` stands for what lies in the JVM, and for frames, which PySpark's types know by halves.

SENT: Final = StructType([StructField("ends", LongType())])
"""The columns of a task that sends its elements another way. It makes no rows."""


_failed: Final = WeakSet[Any]()
"""The frames that could not be read once."""


@contextmanager
def planned(frame: Any) -> Generator[Any]:
    """Enter with the frame itself, or with one that Spark plans anew, to be read inside.

    A frame keeps its plan. The plan may be from before the session has cached something. And it keeps the stages before a
    shuffle, with their failure or cancellation.
    """
    anew = frame in _failed or not caches(frame.sparkSession).isEmpty()
    try:
        yield frame.select("*") if anew else frame
    except Exception:
        _failed.add(frame)
        raise


def over_plan(plan: Any, session: Any, task: RegionTask) -> Any:
    """Return the JavaRDD that runs a task over each partition of a plan. This may run the stages of Spark before a shuffle."""
    context = session.sparkContext
    nodes = _nodes(context)
    # A node has the settings of the session that is active when it is made, which is this one on the threads of a job.
    function = _wrap_function(context, task.over_batches, SENT)
    udf = nodes.udf(task.source, function, nodes.struct, nodes.no_inputs, nodes.kind, True, nodes.number)
    node = nodes.map_in_arrow(udf, nodes.attributes, plan, False, nodes.none)
    return node.execute().toJavaRDD()


@frozen(eq=False)
class Nodes:
    """The classes of Spark that a node is made of, and the parts that all nodes have in common."""

    udf: Any
    map_in_arrow: Any
    struct: Any
    attributes: Any
    number: Any
    no_inputs: Any
    """The node passes on all columns, whatever these are."""
    none: Any
    kind: int


@once_for_each
def _nodes(context: SparkContext) -> Nodes:
    own: Any = context
    sql = own._jvm.org.apache.spark.sql
    catalyst, execution = sql.catalyst, sql.execution
    struct = sql.types.DataType.fromJson(SENT.json())
    return Nodes(
        catalyst.expressions.PythonUDF,
        execution.python.MapInArrowExec,
        struct,
        catalyst.types.DataTypeUtils.toAttributes(struct),
        catalyst.expressions.NamedExpression.newExprId(),
        own._jvm.PythonUtils.toSeq([]),
        own._jvm.scala.Option.empty(),
        PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
    )
