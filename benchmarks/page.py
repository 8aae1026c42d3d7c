"""The page of the documentation, and its plots, from the figures of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from .harness import CPU, WALL, Measured, Outcome, Verdict, number
from .plots import LIMIT, OTHERS, OURS, Dots, dots, lines
from .report import Report

DOCS: Final = Path(__file__).parents[1] / "docs"
FIGURES: Final = "results.json"

HEAD: Final = """\
# Benchmarks

This page shows the cost of a stream, beside code by hand and beside the libraries that people use for the same work. No figure
here is a promise: all were made on the machine named below, or on the one that a chapter names. Only ratios of contestants in the same run
travel to other machines. Make your own figures:

```console
python3 dev.py bench            # some minutes; --quick: about one; --only boundary threads: two chapters
python3 dev.py bench --json now.json
python3 dev.py bench compare before.json now.json
python3 dev.py bench --docs     # measures everything and writes this page, its plots and its figures anew
python3 dev.py bench docs docs/benchmarks/results.json now.json  # the same with rows of another run in their places
```

## How it is measured

- **The same work, the same result.** Every contestant's result is compared with the right one in every turn.
- **In turns, in one process.** The contestants of a workload take turns, round after round and in changing order. So all
  of them meet the same slow moments of the machine. A ratio is taken within a round. The page shows its median and its range.
  Chapters may be runs of different days or machines, and then say so: no ratio is taken across them.
- **CPU time beside wall time.** Where nobody waits for another process, CPU time is compared: it hardly depends on other
  work of the machine. It counts all threads.
- **The limit is written by hand.** For boundaries it is lists of 256 elements, handed over by scheduled callbacks, with a request
  for each. That is as much as Python gives for a bounded hand-over. For fused operators it is the chain of builtins. The bars below
  are ratios to these.
- **Slow contestants get fewer elements**, so that a turn takes about as long for everybody. Figures are for one element. The
  tables that `bench` prints say how many there were.
- **Contestants that can't be installed or imported are named**, and never left out in silence.
- Figures that do not depend on the machine are not here: Python calls, allocations and wake-ups of the loop for each element.
  `tests/test_counts.py` asserts them.

To add a contestant, write one function, in the module `benchmarks/bench_*.py` of its chapter:

```py
@FIELD.contestant("yours", needs="your_module")
async def yours(n: int, size: int) -> int: ...
```

## Work derived from TPC-H

The chapter `tpch` has queries 1, 3, 6, 12 and 14 of TPC-H, sessions of a click stream, a count of words, and the three greatest of each key:

```console
python3 dev.py bench --only tpch
TPCH_SCALE=1 python3 dev.py bench --only tpch
```

`tpchgen-cli` makes the tables once, at scale 0.1, in `out/tpch`. Another run reads them again. A query runs by operators with `to_frame`,
by `mapInArrow`, by an RDD, by Spark's SQL, and by operators on the event loop. Keyed work has `applyInArrow` or `mapInArrow` beside it. The
bars are ratios of the CPU time of all processes. Each way runs three times before it is measured: in a cold JVM the ratios of the first query went
from 1.0 to 1.5.

The tests compare the rows of all ways at scale 0.01. Money is in whole cents, so results are equal to the last digit. This is not TPC-H:
averages are left out, Q3 gives all rows instead of the first ten, and nobody audits a run.
"""

LIMITS: Final = """\
## Where a bar is missed, or wavers, and why

- **Fused map + filter + sum.** The builtin `sum` adds in C, the fused function in bytecode. The table has the same loop by hand. It
  also has that loop in slices of 128 with a look at the clock between them, which keeps the event loop free. The flow takes such slices too, and
  lets the loop have a turn each millisecond. Runs gave 0.94 to 1.17 times the builtins. Yet neither of the others can
  stop for want of demand, or name the operator that failed. With `reduce`, which calls a function in both, the same chain is level with the builtins.
- **Round trips.** One element at a time is a turn of each of two regions. In one loop that is 31 calls of Python with
  `async for`, and some 20 where a region counts the elements. If a region without stages is asked for one element, it passes on a list of one as
  it is. To make an iterator of each took a quarter of the time. Between threads the calls come before a wake-up and behind a sleep, where
  code runs cold: 2 us of work in one loop takes 3 to 7 there. Fifty empty calls of a function take 5 us when warm. Before each
  `call_soon_threadsafe` by hand they show the same on a busy machine. On a quiet one the two wake-ups hide either, as their cost
  doubles from one hour to the next. With uvloop runs gave 1.16 to 1.22 times `call_soon_threadsafe`.
- **Between threads** the two wake-ups of a round trip cost most, and their cost depends on the machine at that moment. The same
  lists by hand took from 70 to 290 ns an element on one machine within an hour. A larger prefetch wakes less often. Against culsans, at
  prefetch 256, quiet runs gave 8.0 to 10.8 times (asyncio) and 8.3 to 11.0 (uvloop). In a run that gave 8.2 and 8.3, the lists by hand, with as much
  under way, were 8.5 and 9.7 times as fast as culsans. A busy machine, where a wake-up finds a core that is awake, gave 16.6 and 18.0.
- **Processes.** With as much under way as by hand, lists of 256, two workers take some 1.2 of its time. With chunks of 4 ms,
  which is the default, 1.1. Both cores are busy all the time, so CPU counts: 5.3 us an element by hand, 6.1 here. The parent takes 0.3 us
  of the difference, for order, demand, and the cost of a list. The workers take the rest. At most 0.15 us of it is the region's own
  code (13 us a list when warm, 35 when another process has had the processor). The function takes the remainder, since it runs
  slower: a list comprehension in its place takes about as long. Workers by hand that split one line by `shlex` before each list, 6 us,
  slow down from 5.0 to 5.6 us a call. Four lines do no more, ten system calls or a plain loop nothing. Without the split the speed
  comes back. Most likely the processor has to get used to the function again after varied code. Longer chunks make it rarer.
- **Elements to processes.** The parent pays for chunks: 70 to 80 us for each, in some 240 calls of Python and C. So quick functions get large chunks.
  By default up to 4,096 elements are outstanding. With two workers that is four chunks of 1,024. The loop by hand sends lists of 256, four at a
  time, so 1,024 elements are outstanding there. A flow with `prefetch=1024` has as many, and takes 2.5 times as long. Arrays of 1 MiB travel seven in a
  chunk. To copy one takes 40 to 60 us on an AMD EPYC, and 90 on an Intel Xeon, in either program. With four under way, as by hand, each has a chunk
  of its own, whose calls take as long again. They run slowly, because the copy has pushed their code and data out of the processor's caches. On the Xeon
  runs gave 1.13 to 1.67 times, the higher ones while the loop by hand took longer as well.
- **Pairs of each element.** `flat_map_iterable` resumes a generator for each result, and counts the results, so that it looks at the clock once for 64
  of them. The loop by hand does neither. Runs gave 1.93 to 2.13 times.
- **Lines of a file, from run to run.** Runs gave 1.07 to 2.00 times the loop by hand, and the latest two 1.21 to 1.24. Chunk, text and lines are free
  before the next chunk is read. If glibc then gives the memory back, each chunk is made of new pages. With
  `MALLOC_TRIM_THRESHOLD_=131072` and the same for `MALLOC_MMAP_THRESHOLD_` a flow took twice as long, and the loop by hand 1.6 times.
- **Few rows.** A flow costs some calls into the JVM, a job for each partition, and the plan's code. By threads, a flow of 30,000 rows took 0.09 s of CPU,
  0.035 of it in this process, and `toLocalIterator` 0.16. That was in a JVM that had run each 200 times. The first forty took 0.23 and 0.26 s, and the
  JVM's compilers had 0.12 and 0.07 of that. So a turn of the benchmark reads such a frame ten times, and twenty turns do not count. Runs
  gave 1.4 to 2.0 times, and the latest two 1.9 and 2.0. Runs of the row of 2,000 columns gave 1.03 to 1.36 times `collect`, and the latest two 1.10 and 1.15.
- **Joins.** Q14 joins what a function keeps with a small table. If the function is to discard 99 of 100 rows, all rows go to Python, and Spark's SQL has
  the statistics of the file discard most. `mapInArrow` by hand has the same to pay. So have Spark filter, by `frame.where(...)`: that is the row
  which the bar is about. The whole query takes SQL 0.2 s of CPU or less. In a JVM that ran only these ways, sixty times each, a flow took 1.16 times as much, and
  `mapInArrow` by hand 1.18. It took 14 ms more to plan, 9 in the workers, and 8 in the JVM's tasks. In the benchmark, single rounds gave 0.6 to 2.9 times, since
  the JVM collects its garbage in some. Its runs gave 0.93 to 1.60 times, and 1.20 to 1.30 by hand. At scale 1 a run gave 1.36 times, and 1.40 by hand.
- **Garbage of RDDs.** In a row with RDDs the JVM collects their garbage while the next way runs, up to 0.2 s of its 1.1. So the ways that a bar
  compares have rows of their own.
- **Keyed work on Spark.** Before the shuffle a task holds elements by their keys. So a row of the shuffle has several of them, and Spark has fewer rows to
  sort. An element and its place in the order are no pair, but neighbours in a list: pairs took more of the processor's caches, and 0.3 of 0.8 s.
  In a warm JVM the number of partitions hardly counts. The sessions took 0.96 and 1.02 times `groupByKey` with pairs, and 0.81 to 0.94 without.
  `count()` and `top_k()` also run before the shuffle, so Spark shuffles few rows. To count the words took 1.01 to 1.28 times `Counter.update` by hand in
  batches, and a third of `applyInArrow`: Python had 0.65 s, and 0.47 by hand. The function of the key is called for each of 2.6 million words, which takes 0.1 s, and by hand there is none.
  The sums of the tasks are added up in Python, by tasks of their own, and by hand Spark does that.
- **Batches into files.** The first runs give 1.09 to 1.18 times `mapInArrow`, because the JVM's compilers are at work. So five rounds do not count.
- **Rows from Spark.** JVM, workers and loop are at work side by side; `toLocalIterator` has the JVM and Python take turns. So where
  the cores have other work as well, the factor is smaller: see [Spark](concepts/spark.md). On two cores CPU time counts. Five runs with the version before gave
  3.0 to 4.1 times for 600,000 rows. By threads, such a flow took 0.9 to 1.0 s of CPU on a busy machine. The loop had about 0.45 of that, the JVM's tasks 0.27, and
  the workers 0.2. Half of the workers' time went into cutting batches and writing them anew. Now a batch that is not cut travels as it came,
  and with four times the prefetch few are cut. Then the workers had 0.1 s, and two runs gave 4.8 and 4.7 times. `toLocalIterator` took 3.4 to 4.2 s, about 2.2 of it in Python.
- **Elements of an async iterator.** A call of a Python function takes some 60 ns here, warm, so calls are what counts. `sum` over a ready generator makes
  two for an element: the generator's, and the one that looks whether it has suspended. A bare loop makes one. `async for` makes six: `__anext__`, the
  pass of the region, and four that advance the generator in the name of its owner. Where each element suspends, the bare loop makes 18, and 15 of
  them are asyncio's. `async for` makes 38. Runs gave 1.53 to 2.05 times for `sum` over a ready one, and 1.22 to 1.31 over a suspended one. For `async for` over a
  suspended one they gave 2.6 to 3.1.
- **Several suspended sources.** An element of eight that are merged takes 18 calls, and 14 of them are asyncio's and the generator's. The others advance the
  generator for its owner. It appends its elements to a list of the combinator, which counts them when there are many. The region behind gets one list of all that
  comes in one turn of the loop. With a list for each element it took 1.47 to 1.52 times the tasks by hand. Tasks by hand take 16 calls, and aioitertools 28. So calls are
  not all that counts: each wait passes three more generators than by hand. Runs gave 0.92 to 1.01 times aioitertools, which has neither demand nor a
  bound. A pair of a zip takes 44 calls, and 29 of them are not ours. Runs gave 1.24 to 1.54 times the tasks by hand, and 1.56 to 1.65 with a list for each element.
- **Inner flows.** Generators that never wait run in the name of one task, one after another. So `concat_map` takes 67 calls for each, and `flat_map` 73. With
  a task for each both took 101, and `concat_map` a turn of the event loop as well: 22 and 26 times the loop by hand. The rest is to build the
  flow, to subscribe, and to signal the elements and the end. In a simulation of the processor's nearest caches an inner flow of `flat_map` misses code 950 times and
  data 2,100 times, and the loop by hand never. So the ratio depends on the machine, and on its neighbours. An Intel Xeon gave 21 to 29 times (`flat_map`) and 17 to 24 (`concat_map`), and an AMD EPYC 12.9 to 20 and 11.3 to 18.
- **Groups.** A group of two elements is a flow, with an end that is awaited in a task: some 145 calls. A task with a queue by hand takes 75, and has no bound
  over all groups, no failure that reaches them, and no cancel. A fifth of the calls bring the group to `async for`, one at a time. A quarter are
  asyncio's. Each group is 25 objects for the garbage collector while it is open, and a task with a queue 14. The collector looks at all of 20,000 groups
  again and again. That takes 18 us for a group, and 5 by hand. Without it a group took 26 to 28 us, and 10.5 by hand. An Intel Xeon gave 43 to 67 us, and by
  hand 16 to 22, an AMD EPYC 40 to 50 and 15 to 21.
- **Another machine.** On an Intel Xeon the version before missed three bars that the chapters on streams of services meet here. `flat_map` and `concat_map`
  to a generator of three took 24.3 and 23.3 times the loop by hand, and `sum` over a suspended source 1.31 times. A group of two took 52 us.
- **A slow machine.** An EPYC that ran at about half its speed, and not evenly, gave these figures for the version before. They differ from the tables most where a bar is
  in microseconds. `flat_map` to an async generator of three took 18.9 times the loop by hand, and 23.2 before an inner flow took fewer calls. `concat_map` took
  18.0 times. A pair of a zip took 1.70 times the tasks by hand. `sum` over a ready generator took 2.14 times the bare loop. `async for` over a range took 2.5
  to 3.4 times an async generator, in the version before as well. A run of `repeat` took 4.7 us, one of `retry` 7.9, and a group of two 138.
- **One element for several readers.** For a queue the loop makes a callback for each task that it wakes. Here one callback makes the steps of all
  eight readers, and those that wait again request their next element together, under one lock. Runs gave 0.75 to 0.81 times the queues, and 0.98 to
  1.07 with uvloop. Uvloop's callbacks are so cheap that only the calls count. With a `prefetch` all of this is done for a list.
- **Offers from a thread, one by one.** The thread runs cold, behind a switch. A call of a function takes several times as long then. To take a
  lock that the loop has released takes 0.3 us, so the loop takes it. Quiet runs gave 1.19 to 1.30 times, and a busy machine 1.31 to 1.88.
- **Thousands of subscribers.** The time of subscribing is taken off. Streams of 1,024 elements are too short for that: they gave 8 to 49 ns, from
  run to run. Those of 4,096 give 19 to 27.
- **Bodies of chunks of 64 KiB, from run to run.** Each chunk is a copy of 64 KiB into the socket, after which the processor's caches are cold. Starlette
  awaits the iterator in the task that sends. Here a task owns the iterator, and the one that sends advances it in its name, for exact
  demand and a cleanup in its own context. That is six calls of Python for each chunk and not two. Runs gave 0.86 to 1.27 times the CPU of
  Starlette, and 1.04 to 1.18 of the time. The latest gave the least of both.
- **Events to a thousand clients, from run to run.** Nearly all CPU of an event is the server's `send` and the system's. The rest is the place of each
  client in the shared log, counted demand, and the wake-up of its task. Runs on a processor with nothing else to do gave 1.19 to 1.39 times the loop by hand, and the
  latest 1.19, or 1.23 while 50 others stall. An event bears the time at which it is due. So p99 grows without a bound where the processor is
  too busy for ten thousand sends a second, by hand too.
"""


def write(report: Report, docs: Path = DOCS) -> None:
    """Write the page, the plots and the figures."""
    folder = docs / "benchmarks"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, text in files(report).items():
        (docs / name).write_text(text, encoding="utf-8")
    report.save(folder / FIGURES)


def files(report: Report) -> dict[str, str]:
    """Return the page and the plots by their names below `docs`."""
    made: dict[str, str] = {}
    sections: list[str] = []
    for chapter, group in groupby(report.outcomes, lambda outcome: outcome.row.chapter):
        outcomes = list(group)
        sections.append(f"## {chapter}\n")
        dates = sorted({outcome.date or report.date for outcome in outcomes})
        processors = sorted({outcome.processor or report.machine.processor for outcome in outcomes})
        elsewhere = "" if [report.machine.processor] == processors else f", {' and '.join(processors)}"
        if [report.date] != dates or elsewhere:
            sections.append(f"Measured on {' and '.join(dates)}{elsewhere}.\n")
        for title, plot in _plots(outcomes):
            name = f"benchmarks/{_slug(title)}.svg"
            made[name] = plot
            sections.append(f"![{title}]({name})\n")
    page = [HEAD, _machine(report), _bars(report.verdicts), LIMITS, *sections, *_absent(report)]
    return {"benchmarks.md": "\n".join(page), **made}


def _machine(report: Report) -> str:
    machine = report.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    quick = " This is a quick run, with few rounds, to see the page only." if report.quick else ""
    return (
        f"## The machine\n\n{machine.python} on {machine.system}, {machine.cores} cores ({machine.processor}), "
        f"{report.date}.{quick}\n`{packages}`\n\nThe figures: [{FIGURES}](benchmarks/{FIGURES}).\n"
    )


def _bars(verdicts: Sequence[Verdict]) -> str:
    rows = [f"| {each.row} | {each.bar} | {each.ours} | {_word(each)} |" for each in verdicts]
    return "\n".join(["## The bars\n", "| workload | bar | ours | |", "| --- | --- | --- | --- |", *rows, ""])


def _word(verdict: Verdict) -> str:
    return {True: "met", False: "**missed**", None: "-"}[verdict.met]


def _absent(report: Report) -> Iterator[str]:
    """Name each row and each contestant without figures, and say why."""
    lost = {f"{name} (a chapter)": why for name, why in report.absent.items()}
    lost |= {each.name: each.absent for outcome in report.outcomes for each in outcome.measured if each.absent}
    if lost:
        yield "## Absent\n"
        yield "\n".join(f"- {name}: {why}" for name, why in lost.items()) + "\n"


def _plots(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str]]:
    single = [outcome for outcome in outcomes if not outcome.row.series and len(outcome.measured) > 1]
    for title, group in groupby(single, lambda outcome: outcome.row.workload):
        yield title, _dot_plot(title, list(group))
    for series in dict.fromkeys(outcome.row.series for outcome in outcomes if outcome.row.series):
        yield series, _line_plot(series, [outcome for outcome in outcomes if outcome.row.series == series])


def _dot_plot(title: str, group: Sequence[Outcome]) -> str:
    """Draw one workload, on each kind of loop."""
    row = group[0].row
    metric = row.figures[0]
    rows: list[Dots] = []
    for place, each in enumerate(group[0].measured):
        on_each_loop = [outcome.measured[place] for outcome in group]
        if not any(measured.absent for measured in on_each_loop):
            values = [(measured.figures[metric], _label(measured, metric)) for measured in on_each_loop]
            colour = OURS if each.name.startswith("reactive_aio") else LIMIT if each.name == row.limit else OTHERS
            rows.append(Dots(each.name, values, colour))
    rows.sort(key=lambda dots: dots.values[0][0].median)
    return dots(_headline(title), _unit(metric), [outcome.row.loop for outcome in group], rows)


def _headline(title: str) -> str:
    return f"{title[:1].upper()}{title[1:]}"


def _label(measured: Measured, metric: str) -> str:
    label = number(measured.figures[metric].median)
    if measured.ratio is not None and metric in (CPU, WALL):
        label += (
            f" ({measured.ratio.median:.2f}x)" if measured.ratio.median < 100 else f" ({measured.ratio.median:.0f}x)"
        )
    return f"{label}, {measured.note}" if 0 < len(measured.note) < 12 else label


def _unit(metric: str) -> str:
    return {CPU: "CPU ns an element", WALL: "wall ns an element"}.get(metric, metric)


def _line_plot(title: str, outcomes: Sequence[Outcome]) -> str:
    """Draw what grows, for each contestant, on asyncio where there are several kinds of loop."""
    row = outcomes[0].row
    metric = row.figures[0]
    several = len({outcome.row.loop for outcome in outcomes}) > 1
    series: dict[str, list[tuple[float, float]]] = {}
    for outcome in outcomes:
        for each in outcome.measured:
            if not each.absent and (not several or outcome.row.loop == "asyncio"):
                series.setdefault(each.name, []).append((outcome.row.x, each.figures[metric].median))
    return lines(_headline(title) + (", on asyncio" if several else ""), _unit(metric), row.x_name, series)


def _slug(title: str) -> str:
    return "-".join(_words(title))


def _words(title: str) -> Iterable[str]:
    return re.findall(r"[a-z0-9]+", title.lower())
