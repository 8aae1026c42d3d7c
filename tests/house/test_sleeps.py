"""Tests do not wait for the clock of the machine: virtual time, events and counts say when something has happened."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LEFT = 102
"""How many are left of what sleeps, or may do so. The number may only fall: write a lower one when there are fewer."""
SOON = 1.0
"""Seconds. A longer sleep is one of virtual time, or one that is cancelled: nobody waits so long."""


def waits(call: ast.Call) -> bool:
    """Return whether a call sleeps by the clock of the machine, or may do so."""
    name = ast.unparse(call.func)
    if name == "time.sleep":
        return True
    if name not in {"asyncio.sleep", "anyio.sleep"} or not call.args:
        return False
    seconds = call.args[0]
    return not isinstance(seconds, ast.Constant) or (isinstance(seconds.value, float) and 0 < seconds.value < SOON)


def on_virtual_time(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a test runs on virtual time: by the fixture, by a mark, or by `run_virtual` in it."""
    names = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
    return "virtual_time" in {each.arg for each in function.args.args} or not names.isdisjoint(
        {"run_virtual", "virtual"}
    )


def sleeps(node: ast.AST, *, virtual: bool = False) -> Iterator[ast.Call]:
    """Yield the calls that sleep. On virtual time only `time.sleep` does."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        virtual = virtual or on_virtual_time(node)
    elif isinstance(node, ast.Call) and waits(node) and (not virtual or ast.unparse(node.func) == "time.sleep"):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from sleeps(child, virtual=virtual)


def test_the_number_of_sleeps_falls() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): count
        for path in sorted(TESTS.rglob("*.py"))
        if (count := len([*sleeps(ast.parse(path.read_text()))]))
    }

    assert LEFT == sum(found.values()), f"use the virtual clock, or lower the number: {found}"


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(n)",
        "await asyncio.sleep(0.01)",
        "await anyio.sleep(n / 2)",
        "async def f(): await asyncio.sleep(0.5)",
        "def test(virtual_time): time.sleep(0.5)",
    ],
)
def test_a_sleep_is_found(code: str) -> None:
    assert 1 == len([*sleeps(ast.parse(code))])


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.sleep(0)",
        "await asyncio.sleep(3600)",
        "async def test(virtual_time):\n    async def main(): await asyncio.sleep(0.5)",
        "def test():\n    async def main(): await asyncio.sleep(0.5)\n    run_virtual(main())",
        "@virtual\nasync def test(): await asyncio.sleep(0.5)",
    ],
)
def test_a_turn_of_the_loop_and_virtual_time_are_let_through(code: str) -> None:
    assert [] == [*sleeps(ast.parse(code))]
