"""Warnings of Spark that say nothing: that tasks were stopped whose flow has ended.

Spark warns of each task that had to be stopped, and of what it had half done. That a subscriber has cancelled is nothing to warn
of. So the log of the driver leaves out those messages, about the jobs, stages and blocks of cancelled flows and about no others.
Executors on other machines write logs of their own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field

PREFIX: Final = "reactive_aio-"
"""The names of all groups of jobs begin with this."""
RECENT: Final = 256
"""The number of remembered stages and blocks. Messages on them come within seconds."""
LOGGERS: Final = (
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.storage.BlockManager",
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory",
)

_LOCK: Final = Lock()


def hush(context: Any, group: str) -> None:
    """Let the driver log nothing about the tasks of a group of jobs that is about to be cancelled.

    Called on a thread.
    """
    with suppress(Exception), _LOCK:  # it logs by other means, or the JVM is gone
        _HUSHED.setdefault(context, Hushed()).add(context, group)


@define(eq=False)
class Hushed:
    """The messages that the log of one driver leaves out."""

    _stages: deque[int] = field(init=False, factory=lambda: deque[int](maxlen=RECENT))
    _data: deque[int] = field(init=False, factory=lambda: deque[int](maxlen=RECENT))
    """Datasets that were being kept."""
    _filter: Any = field(init=False, default=None)

    def add(self, context: Any, group: str) -> None:
        """Leave out the messages about a group."""
        found = list(_stages_of(context, group)) if str(context.master).startswith("local") else []
        self._stages.extend(stage.stageId() for stage in found)
        self._data.extend(each for stage in found for each in _items(stage.rddIds()))
        if found or self._filter is None:
            self._replace(context)

    def _replace(self, context: Any) -> None:
        log4j = context._jvm.org.apache.logging.log4j
        configuration = log4j.LogManager.getContext(False).getConfiguration()
        # Loggers of their own would not heed the level that Spark's shells have set for all.
        configs = {config.getName(): config for config in map(configuration.getLoggerConfig, LOGGERS)}.values()
        results, before = log4j.core.Filter.Result, self._filter
        pattern = leaves_out(self._stages, self._data)
        self._filter = log4j.core.filter.RegexFilter.createFilter(pattern, None, False, results.DENY, results.NEUTRAL)
        for config in configs:
            config.addFilter(self._filter)
            if before is not None:
                config.removeFilter(before)


_HUSHED: Final = WeakKeyDictionary[Any, Hushed]()


def leaves_out(stages: Iterator[int] | deque[int], data: Iterator[int] | deque[int]) -> str:
    """Return the pattern of messages that are left out.

    >>> import re
    >>> pattern = leaves_out(iter([3]), iter([]))
    >>> worker = "Incomplete task interrupted: Attempting to kill Python Worker - task 0.0 in stage"
    >>> [bool(re.fullmatch(pattern, f"{worker} {stage} (TID 7)")) for stage in (3, 33)]
    [True, False]
    """
    own = rf"cancelled job group {re.escape(PREFIX)}[0-9a-f]{{16}}\b.*"
    stage, block = _any_of(stages), rf"rdd_{_any_of(data)}_\d+"
    texts = (
        rf"Lost task .*TaskKilled.*{own}",
        rf"Incomplete task interrupted: .* in stage {stage} \(.*",
        rf"Putting block rdd_\d+_\d+ failed due to exception .*TaskKilledException.*{own}",
        rf"Block {block} could not be removed .*",
        rf"Asked to remove block {block}, which does not exist",
    )
    return f"(?s)(?:{'|'.join(texts)})"


def _any_of(numbers: Iterator[int] | deque[int]) -> str:
    return f"(?:{'|'.join(map(str, numbers)) or 'none'})"


def _stages_of(context: Any, group: str) -> Iterator[Any]:
    """Yield Spark's information on the stages of a group that have not ended."""
    tracker, store = context._jsc.statusTracker(), context._jsc.sc().statusStore()
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is not None and info.status().toString() == "RUNNING":
            for stage in info.stageIds():
                with suppress(Exception):  # it has been forgotten
                    yield store.lastStageAttempt(stage)


def _items(scala: Any) -> Iterator[Any]:
    items = scala.iterator()
    while items.hasNext():
        yield items.next()
