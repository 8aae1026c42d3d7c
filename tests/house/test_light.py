"""An import takes what every flow needs, and no more: the rest is loaded when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reactive_aio

LOADED = """
import reactive_aio, sys
print(*(name.removeprefix("reactive_aio.") for name in sys.modules if name.startswith("reactive_aio.")))
"""

OPERATORS = {
    "filtering.filter",
    "filtering.take",
    "folding.fold",
    "sourcing.computed",
    "sourcing.iterable",
    "transforming._room",
    "transforming.map",
}
"""Those that nearly every flow has, which would be loaded at once anyway: an import in a function takes a microsecond."""


def loaded() -> set[str]:
    return set(
        subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    )


def test_an_import_loads_no_engine_no_scheduler_and_no_tool() -> None:
    assert {"_core", "_flow", "_fusion", "_plan", "errors", "hooks", "operators", "spec"} == {
        name.split(".")[0] for name in loaded()
    }


def test_an_operator_is_loaded_when_it_is_used() -> None:
    operators = {name.removeprefix("operators.") for name in loaded() if name.startswith("operators.")}

    assert OPERATORS == {name for name in operators if "." in name}


def test_what_is_loaded_later_is_there_from_the_start() -> None:
    program = "import reactive_aio; print(reactive_aio.schedulers.current(), 'Backoff' in dir(reactive_aio))"

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "Current() True\n" == done.stdout


def test_an_import_of_everything_has_what_is_loaded_later_too() -> None:
    everything: dict[str, object] = {}

    exec("from reactive_aio import *", everything)

    assert {"Backoff", "Flow", "schedulers", "processor"} <= everything.keys()
    assert "TYPE_CHECKING" not in everything


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'reactive_aio' has no attribute 'Flaw'"):
        _ = reactive_aio.Flaw  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
