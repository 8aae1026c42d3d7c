"""The public names and their signatures, written to a file, so that no change of one goes unseen.

python -m tests.house.surface        writes tests/house/surface.txt anew
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

FILE: Final = Path(__file__).with_suffix(".txt")
PACKAGE: Final = "reactive_aio"
MODULES: Final = (
    "",
    ".operators",
    ".schedulers",
    ".spec",
    ".extend",
    ".errors",
    ".hooks",
    ".io",
    ".web",
    ".testing",
    ".tck",
    ".strict",
    ".spark.session",
)
"""The public modules. Each lists the names that it exports."""


def exported(module: ModuleType) -> list[str]:
    """Return the names of ``__all__``, else those imported as themselves and those defined here."""
    if hasattr(module, "__all__"):
        return sorted(name for name in module.__all__ if name[0].isalpha())
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    names = {alias.asname for node in imports for alias in node.names if alias.asname == alias.name}
    names |= {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return sorted(name for name in names if name and name[0].isalpha())


class Text(str):
    """A text that is shown as it is, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(value: Any) -> str:
    """Return the parameters and the result, or nothing where Python can't tell."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        each.replace(annotation=shown(each.annotation), default=shown(each.default))
        for each in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=shown(found.return_annotation)))


def shown(value: Any) -> Any:
    """Return an annotation without quotes, and a function by its name, since its repr has an address."""
    if inspect.isroutine(value):
        return Text(value.__name__)
    return Text(value) if isinstance(value, str) and value else value


def members(kind: type) -> Iterator[str]:
    """Yield what a class has of its own and of classes of the package."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith(PACKAGE):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
            found |= {name: None for name in getattr(base, "__annotations__", ()) if not name.startswith("_")}
    for name in sorted(found):
        value = found[name]
        function = getattr(value, "__func__", value)
        yield f"    .{name}{signature(function) if inspect.isfunction(function) else ''}"


def surface() -> str:
    """Return all public names, module by module."""
    lines: list[str] = []
    for end in MODULES:
        module = importlib.import_module(PACKAGE + end)
        lines.append(f"{module.__name__}")
        for name in exported(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                lines.append(f"  {name}: a module")
            elif inspect.isclass(value):
                lines += [f"  class {name}{signature(value)}", *members(value)]
            else:
                lines.append(f"  {name}{signature(value)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
