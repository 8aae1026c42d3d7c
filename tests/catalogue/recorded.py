"""The examples that a cluster has to run, which has no virtual time: their record is drawn, and tests/spark runs them again.

They are written as the others are, but time goes in steps: each signal is a step behind the one before. A request is
made at its step, or when all elements of the earlier requests have arrived.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from attrs import define, field

from reactive_aio.testing.listening import COMPLETE, NEXT
from reactive_aio.testing.marbles import parse as parse_marbles

from .examples import Example, parse
from .running import Lane, Ran, written

FILE = Path(__file__).with_name("on_spark.txt")


def recorded_examples() -> list[Example]:
    """Return the examples, as they are recorded."""
    return [*parse(FILE.read_text(encoding="utf-8"), FILE.name)]


def drawn(example: Example) -> Ran:
    """Return the run that an example records, for its picture."""
    meaning = dict(each.split(" = ", 1) for each in example.said("where").split("; ") if each)
    flows = {name: [_lane(text, example.said("asked"), {})] for name, text in example.flows.items()}
    result = _lane(example.said("given"), example.said("wanted"), meaning)
    told = [(at, sign) for sign, at in _timed(example.said("told"))]
    return Ran(example, flows, result, told, [], None, f"await {example.call}" if flows else example.call)


def _lane(given: str, asked: str, meaning: dict[str, str]) -> Lane:
    lane = Lane()
    for at, kind, sign in parse_marbles(given):
        if kind == NEXT:
            lane.given.append((at, meaning.get(sign, sign)))
        else:
            assert kind == COMPLETE
            lane.end = (at, None)
    for number, time in _timed(asked):
        lane.asked.append((time, float("inf") if number == "∞" else float(number)))
    return lane


def _timed(text: str) -> list[tuple[str, float]]:
    return [(sign, float(at)) for sign, at in re.findall(r"(\S+)@(\d+)", text)]


@define
class Record:
    """The record of a run, step by step."""

    example: Example
    step: int = field(init=False, default=0)
    result: Lane = field(init=False, factory=Lane)
    flows: dict[str, list[Lane]] = field(init=False, factory=dict[str, list[Lane]])
    told: list[tuple[float, str]] = field(init=False, factory=list[tuple[float, str]])

    def next(self, lane: Lane, item: Any) -> None:
        """Write an element down."""
        self.step += 1
        lane.given.append((self.step, item))

    def end(self, lane: Lane) -> None:
        """Write the end down."""
        self.step += 1
        lane.end = (self.step, None)

    def tell(self, *_: object) -> None:
        """Write a call down, by its number."""
        self.step += 1
        self.told.append((self.step, str(1 + len(self.told))))

    def __str__(self) -> str:
        done = Ran(self.example, self.flows, self.result, self.told, [], None, self.example.call)
        example = self.example
        return str(Example(example.operator, example.call, tuple(written(done, {}))))
