"""From `examples/flights.py:flow` to the flow: each thing that can be wrong has its own words."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from .._flow.flow import Flow

AnyFlow = Flow[Any]
"""Of a flow that comes by its name, the type of the elements is not known."""


class TargetError(Exception):
    """There is no such flow. The message says what is wrong and what to do."""


def load(target: str) -> object:
    """Import the module of a target and return its attribute."""
    module_name, colon, attribute = target.rpartition(":")
    if not colon or not module_name or not attribute:
        raise TargetError(f"{target!r} is not MODULE:ATTRIBUTE, such as examples/flights.py:flow")
    by_file = module_name.endswith(".py") or "/" in module_name or os.sep in module_name
    module = _from_file(Path(module_name)) if by_file else _from_name(module_name)
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise TargetError(f"{module_name} has no attribute {name!r}{_suggestion(module, name)}") from None
    return found


def build(target: str, candidate: object, run: Callable[[Coroutine[Any, Any, object]], object]) -> AnyFlow:
    """Return the flow that a target is or, called without arguments, returns. ``run`` runs a coroutine."""
    if isinstance(candidate, Flow):
        return candidate  # pyright: ignore[reportUnknownVariableType] - of what type its elements are, nobody knows
    if not callable(candidate) or isinstance(candidate, type):
        raise TargetError(f"{target} is {_kind(candidate)}, but should be a flow or a function that returns one")
    _check_arguments(target, candidate)
    made: object = candidate()
    if inspect.isawaitable(made):
        made = run(_awaited(made))
    if not isinstance(made, Flow):
        raise TargetError(f"{target}() returned {_kind(made)}, but should return a flow")
    return made  # pyright: ignore[reportUnknownVariableType] - as above


async def _awaited(made: Awaitable[object]) -> object:
    return await made


def _check_arguments(target: str, function: Callable[..., object]) -> None:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise TargetError(f"{target} is called without arguments, but {error}") from None
    except ValueError:
        return  # a builtin that does not tell its arguments


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _suggestion(module: ModuleType, name: str) -> str:
    flows = [each for each, value in vars(module).items() if isinstance(value, Flow)]
    near = get_close_matches(name, vars(module), n=1)
    best = near or flows
    return f"; did you mean {best[0]!r}?" if best else ""


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetError(f"there is no file {str(path)!r}, seen from {str(Path.cwd())!r}")
    path = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        raise TargetError(
            f"{path.name} can't be imported as {path.stem!r}, because another module has this name. Rename the file"
        )
    _find_from(path.parent)
    return _imported(path.stem, str(path))


def _from_name(name: str) -> ModuleType:
    _find_from(Path.cwd())
    package = ""
    for part in name.split("."):
        package = f"{package}.{part}" if package else part
        if not part.isidentifier() or (package not in sys.modules and _spec(package) is None):
            raise TargetError(f"there is no module {package!r}. To name a file, write its path with .py")
        _imported(package, package)
    return sys.modules[name]


def _spec(name: str) -> object:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None  # what should be its package is a module


def _find_from(folder: Path) -> None:
    """Make modules in a folder importable, also for processes that start later, such as Spark's workers."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, inherited)])


def _imported(name: str, shown: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever the module does when it is imported
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{line.filename}:{line.lineno}"
        if isinstance(error, SyntaxError):
            where = f"{error.filename}:{error.lineno}"
        raise TargetError(f"{shown} can't be imported: {type(error).__name__}: {error} ({where})") from error
