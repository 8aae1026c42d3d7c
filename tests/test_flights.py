"""The main job: the same report and the same file on each engine, and the ones that pandas makes of the same data."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from reactive_aio import Flow
from reactive_aio._cli.loading import build, load

EXAMPLE = Path(__file__).parents[1] / "examples" / "flights.py"
PAGE = Path(__file__).parents[1] / "docs" / "concepts" / "keyed.md"
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)
FILE = ["time_hour", "carrier", "tailnum", "origin", "dest", "hour", "delay"]
ADDED = ["wind_speed", "precip", "visib", "plane_year", "seats"]


@pytest.fixture(scope="module")
def flights() -> Iterator[Any]:
    """The example as a module, loaded as the command line does it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        patch.setenv("PYTHONPATH", "")
        load(f"{EXAMPLE}:flow")
        yield sys.modules["flights"]
        del sys.modules["flights"]


@pytest.fixture
def run(
    flights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., list[Any]]:
    """Run the example as the command line does it, with its file in a folder of the test's own."""

    def run(engine: str = "asyncio", **settings: object) -> list[Any]:
        if engine == "spark":
            request.getfixturevalue("spark")  # else the example starts a session, and leaves it to the tests behind it
        for name, value in {"ENGINE": engine, "OUT": tmp_path, **settings}.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(sys, "path", [str(EXAMPLE.parent), *sys.path])
        with asyncio.Runner() as runner:
            return runner.run(rows_of(build("flow", flights.flow, runner.run)))

    return run


async def rows_of(flow: Flow[Any]) -> list[Any]:
    """Ask for one row after another."""
    return [row async for row in flow]


# -- the whole data, against pandas


@pytest.fixture(scope="module")
def expected(flights: Any) -> pd.DataFrame:
    """The expected content of the file, by other means: joins, and the delays that the data set itself has."""
    data = pd.read_csv(flights.packaged("flights.csv.zip"))
    weather = pd.read_csv(flights.packaged("weather.csv"))
    planes = pd.read_csv(flights.packaged("planes.csv")).rename(columns={"year": "plane_year"})
    joined = (
        data[data.dep_time.notna()]
        .merge(weather[["origin", "time_hour", *ADDED[:3]]], on=["origin", "time_hour"], how="left", validate="m:1")
        .merge(planes[["tailnum", *ADDED[3:], "manufacturer"]], on="tailnum", how="left", validate="m:1")
    )
    joined["delay"] = joined.dep_delay.astype("int64")
    joined["hour"] = joined.hour.astype(str)
    return joined.astype(dict.fromkeys(ADDED, "float64"))[[*FILE, *ADDED, "manufacturer"]]


def worst(flights: pd.DataFrame, by: pd.Series) -> list[tuple[str, float]]:
    """Names and mean delays, the longest first, of those with at least 365 flights."""
    sums = flights.groupby(by).delay.agg(["sum", "count"])
    means = (sums["sum"] / sums["count"])[sums["count"] >= 365]
    return sorted(((str(name), float(mean)) for name, mean in means.items()), key=lambda row: (-row[1], row[0]))


def check(rows: list[Any], file: Path, expected: pd.DataFrame) -> None:
    by = [expected.carrier, expected.origin + "-" + expected.dest, expected.hour, expected.manufacturer]
    ranks = zip(*(worst(expected, each)[:10] for each in by), strict=True)
    assert [attrs.astuple(row) for row in rows] == [
        (rank, *carrier, *route, *hour, *maker) for rank, (carrier, route, hour, maker) in enumerate(ranks, 1)
    ]
    with file.open(encoding="utf-8") as lines:
        written = pd.DataFrame([json.loads(line) for line in lines])
    assert len(written) == 328_521
    assert_frame_equal(
        written.astype(dict.fromkeys(ADDED, "float64")), expected[[*FILE, *ADDED]].reset_index(drop=True)
    )


@pytest.mark.costly
def test_on_asyncio_report_and_file_are_those_of_pandas(
    run: Callable[..., list[Any]], tmp_path: Path, expected: pd.DataFrame
) -> None:
    check(run("asyncio"), tmp_path / "delays.jsonl", expected)


@pytest.mark.spark
def test_on_spark_report_and_file_are_the_same_to_the_byte(
    run: Callable[..., list[Any]], tmp_path: Path, expected: pd.DataFrame
) -> None:
    here, in_spark = tmp_path / "here", tmp_path / "in_spark"

    rows = run("spark", OUT=in_spark)

    check(rows, in_spark / "delays.jsonl", expected)
    assert rows == run("asyncio", OUT=here, FLIGHTS=in_spark / "flights.csv")
    digests = {hashlib.sha256((folder / "delays.jsonl").read_bytes()).digest() for folder in (here, in_spark)}
    assert len(digests) == 1


@pytest.mark.spark
def test_the_plan_of_the_page_is_that_of_the_example(spark: Any, flights: Any, tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```text\n(MapInArrow .*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "small.csv"
    file.write_text("\n".join([HEADER, line(1), ""]))

    def row_of(pair: Any) -> Any:
        return (pair[0], *pair[1])

    engine = flights.ENGINES["spark"]
    departed = engine.departures(file).filter(flights.departed).map(flights.Flight.of)
    frame: Any = (
        flights.delays_by_maker(departed, engine.planes()).map(row_of).to_frame("maker string, n long, sum long")
    )
    plan = re.sub(r"#\d+L?| ASC NULLS FIRST", "", frame._jdf.queryExecution().executedPlan().toString())

    _, *lines = plan.strip().splitlines()  # the first says that Spark may change it
    for found, expected in zip(lines, shown.splitlines(), strict=True):
        assert re.search(".*".join(map(re.escape, expected.strip().split("..."))), found)


# -- small data, for what can go wrong


def line(number: int) -> str:
    """A flight at 5:15 that leaves some minutes late; one in ten is cancelled."""
    departure = "NA" if number % 10 == 0 else str(515 + number % 7)
    return f"2013,1,1,{departure},515,0,830,819,11,UA,{number},N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"


LINES = [HEADER, *map(line, range(5000))]
DEPARTED = 4500


@pytest.fixture
def small(flights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of flights of UA; in the place of the packaged ones stand the same, of PK."""
    file = tmp_path / "small.csv"
    file.write_text("\n".join(LINES) + "\n")

    def unpacked(target: Path) -> Path:
        target.write_text(file.read_text().replace("UA", "PK"))
        return target

    monkeypatch.setattr(flights, "unpacked", unpacked)
    return file


def carriers(rows: list[Any]) -> set[str]:
    return {row.carrier for row in rows}


def count(folder: Path) -> int:
    return len((folder / "delays.jsonl").read_text().splitlines())


def failing(flights: Any, file: Path, times: int, after: int) -> tuple[Callable[[Path], Flow[str]], list[Path]]:
    """A source that breaks off behind some lines in the first attempts to read a file, and the files of all attempts.

    An attempt asks for its source once, and reads it twice. The readers may open and break off in any order.
    """
    attempts: list[Path] = []

    class Source:
        def __init__(self, path: Path, *, breaks_off: bool) -> None:
            self.path = path
            self.breaks_off = breaks_off

        def __iter__(self) -> Iterator[str]:
            reader = iter(flights.Lines(self.path))
            if self.breaks_off:
                yield from itertools.islice(reader, after)
                raise OSError("the disk is gone")
            yield from reader

    def lines(path: Path) -> Flow[str]:
        attempts.append(path)
        return Flow.from_iterable(Source(path, breaks_off=path == file and len(attempts) <= times))

    return lines, attempts


def test_a_flights_file_is_read(run: Callable[..., list[Any]], small: Path, tmp_path: Path) -> None:
    assert carriers(run(FLIGHTS=small)) == {"UA"}
    assert count(tmp_path) == DEPARTED


@pytest.mark.parametrize("engine", ["asyncio", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_flights_may_be_read_several_times_over(
    engine: str, run: Callable[..., list[Any]], small: Path, tmp_path: Path
) -> None:
    assert carriers(run(engine, FLIGHTS=small, FLIGHTS_TIMES=3)) == {"UA"}
    assert count(tmp_path) == 3 * DEPARTED


@pytest.mark.parametrize("engine", ["asyncio", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_packaged_flights_stand_in_for_a_missing_file(
    engine: str, run: Callable[..., list[Any]], small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = run(engine, FLIGHTS=tmp_path / "missing.csv")

    assert carriers(rows) == {"PK"}
    assert count(tmp_path) == DEPARTED
    assert "missing.csv can't be read" in capsys.readouterr().err


def test_the_packaged_flights_stand_in_for_what_are_no_flights(
    run: Callable[..., list[Any]], small: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join([*LINES[:3000], "rubbish"]))

    assert carriers(run(FLIGHTS=broken)) == {"PK"}
    assert count(tmp_path) == DEPARTED


def test_a_source_that_breaks_off_twice_is_read_anew_and_no_flight_counts_twice(
    run: Callable[..., list[Any]],
    small: Path,
    flights: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = run(FLIGHTS=small)
    before = (tmp_path / "delays.jsonl").read_bytes()
    reader, attempts = failing(flights, small, times=2, after=4000)
    monkeypatch.setattr(flights, "lines", reader)

    assert run(FLIGHTS=small) == plain

    assert [small] * 3 == attempts
    assert (tmp_path / "delays.jsonl").read_bytes() == before
    assert capsys.readouterr().err == ""


def test_a_source_that_breaks_off_three_times_is_given_up_for_the_packaged_flights(
    run: Callable[..., list[Any]], small: Path, flights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, attempts = failing(flights, small, times=3, after=4000)
    monkeypatch.setattr(flights, "lines", reader)

    assert carriers(run(FLIGHTS=small)) == {"PK"}

    assert [*[small] * 3, tmp_path / "flights.csv"] == attempts
    assert count(tmp_path) == DEPARTED


def test_when_all_fails_no_file_pretends_to_be_complete(
    run: Callable[..., list[Any]], small: Path, flights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpacked(target: Path) -> Path:
        raise FileNotFoundError(target)

    reader, attempts = failing(flights, small, times=9, after=4000)
    monkeypatch.setattr(flights, "lines", reader)
    monkeypatch.setattr(flights, "unpacked", unpacked)

    with pytest.raises(FileNotFoundError) as caught:
        run(FLIGHTS=small)

    assert [small] * 3 == attempts
    assert "the disk is gone" in str(caught.value.__context__)
    assert not (tmp_path / "delays.jsonl").exists()


def test_the_file_is_written_while_the_flights_are_read_and_few_are_held(
    run: Callable[..., list[Any]], small: Path, flights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    ahead: list[int] = []
    written = 0
    add = flights.Report.add

    class Counted:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __iter__(self) -> Iterator[str]:
            nonlocal read
            for text in flights.Lines(self.path):
                read += 1
                yield text

    def noted(report: Any, batch: list[Any]) -> None:
        nonlocal written
        ahead.append(read - written)
        written += len(batch)
        add(report, batch)

    monkeypatch.setattr(flights.Report, "add", noted)
    monkeypatch.setattr(flights, "lines", lambda path: Flow.from_iterable(Counted(path)))
    monkeypatch.setattr(flights, "worst_makers", lambda _: Flow.of(("EMBRAER", 0.0)))  # it has a reader of its own

    run(FLIGHTS=small)

    assert written == DEPARTED
    # A batch, what two boundaries hold, what is on its way, and the cancelled flights among them.
    assert max(ahead) <= (1000 + 2 * 256 + 64) * 10 / 9 + 550
    assert len(ahead) == 5


def test_an_unknown_engine_is_an_error(run: Callable[..., list[Any]]) -> None:
    with pytest.raises(ValueError, match="spark, asyncio"):
        run("abacus")
