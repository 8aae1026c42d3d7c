"""The sections of the page of the operators about what is not a method of `Flow`: hot sources, processors, snapshots."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from reactive_aio import (
    BoundarySnapshot,
    Hub,
    InnerSnapshot,
    Offer,
    OverflowSnapshot,
    RegionSnapshot,
    Shared,
    SharedSnapshot,
    Snapshot,
    State,
    SubscriberSnapshot,
    processor,
)
from reactive_aio._catalogue.docstring import read
from reactive_aio._plan.snapshot import TasksSnapshot

HOT = """A program feeds a `Hub` and a `State` by calls, and `share` returns a `Shared` flow. [Hot and cold](concepts/hot-and-cold.md) shows
their use. A `processor` stands between a publisher and a subscriber."""
PROGRESS = """`items.snapshot()` of an open flow returns a `Snapshot`. `hub.snapshot()` and `shared.snapshot()` return a `SharedSnapshot`.
[Boundaries](concepts/boundaries.md#what-may-be-on-its-way) shows their use."""
SECTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Hot sources": (HOT, (Hub, Offer, State, Shared, processor)),
    "Snapshots": (
        PROGRESS,
        (
            *(Snapshot, RegionSnapshot, BoundarySnapshot, OverflowSnapshot, TasksSnapshot, InnerSnapshot),
            *(SharedSnapshot, SubscriberSnapshot),
        ),
    ),
}
BUILT = (Hub, State, processor)
"""Those that a program calls. The library makes the others."""


def contents() -> str:
    """Return the lines of the sections in the contents."""
    return "".join(
        f"- {heading}: {', '.join(f'[`{each.__name__}`](#{each.__name__.lower()})' for each in documented)}\n"
        for heading, (_, documented) in SECTIONS.items()
    )


def sections(described: Callable[[object], list[str]]) -> str:
    """Return the sections. ``described`` returns a docstring in lines of Markdown."""
    text = ""
    for heading, (opening, documented) in SECTIONS.items():
        text += f"\n## {heading}\n\n{opening}\n"
        for each in documented:
            lines = [f"### {each.__name__}", ""]
            lines += [f"`{each.__name__}{call(inspect.signature(each))}`", ""] if each in BUILT else []
            lines += described(each)
            if isinstance(each, type):
                lines += ["Its members:", "", *(f"- `{name}`: {told}" for name, told in members(each))]
            text += "\n" + "\n".join(lines).rstrip() + "\n"
    return text


def members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the fields, properties and methods of a class that are for its users, and what is said of each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node, below:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(told))) if not name.startswith("_"):
                yield name, one_line(told)
            case ast.Assign([ast.Name(name)]), ast.Expr(ast.Constant(str(told))):
                yield f"{kind.__name__}.{name}", one_line(told)
            case ast.AsyncFunctionDef("__aenter__"), _:
                yield f"async with {kind.__name__.lower()}", one_line(ast.get_docstring(node) or "")
            case ((ast.FunctionDef(name) | ast.AsyncFunctionDef(name)), _) if not name.startswith("_"):
                yield called(kind, name), one_line(ast.get_docstring(node) or "")
            case _:
                pass


def called(kind: type, name: str) -> str:
    """Return how a property is read or a method is called."""
    member = inspect.getattr_static(kind, name)
    owner = f"{kind.__name__.lower()}." if kind in {*BUILT, Shared} else ""
    if isinstance(member, property):
        return owner + name
    found = inspect.signature(member)
    bare = call(found.replace(parameters=list(found.parameters.values())[1:]))
    return ("await " if inspect.iscoroutinefunction(member) else "") + owner + name + bare


def call(found: inspect.Signature) -> str:
    """Return the parameters of a call, with their defaults and without types."""
    bare = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return re.sub(r"<class '(\w+)'>", r"\1", text).replace("MISSING", "...")


def one_line(text: str) -> str:
    """Return a docstring in one line of Markdown."""
    told = read(inspect.cleandoc(text))
    return " ".join(f"{told.sentence} {told.details}".split()).replace("``", "`")
