"""No exception is tested for truth: its class may define ``__bool__`` or ``__len__``, and then it would be lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "reactive_aio"

CALLED_ONE = re.compile(r"(?!is_)(?:\w+_)?(?:error|exc|exception|failure|failing|fault|cause)")
"""How that is called which holds an exception, or None."""
CALLED_SOME = re.compile(r"(?:\w+_)?(?:errors|exceptions|failures|causes)")
DECLARED_ONE = re.compile(r"[\w.]*(?:Exception|Error)(?: \| (?:[\w.]*(?:Exception|Error)|None))*")
"""The annotation of what holds an exception, or None."""


def name_of(node: ast.AST | None) -> str:
    """Return the name that an expression ends with, without its outer underscores; an empty one if it has none."""
    if isinstance(node, ast.NamedExpr):
        return name_of(node.target)
    if isinstance(node, (ast.Name, ast.arg, ast.Attribute, ast.ExceptHandler)):
        name = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.ExceptHandler: "name"}[type(node)]
        return str(getattr(node, name) or "").strip("_")
    return ""


def declared(tree: ast.AST) -> dict[tuple[bool, str], str]:
    """Return the annotations in a module, by kind (attribute or not) and by name. A caught name is an exception."""
    found: dict[tuple[bool, str], str] = {}
    fields = {each for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            found[False, name_of(node)] = "Exception"
        elif isinstance(node, ast.AnnAssign):
            is_field = node in fields or isinstance(node.target, ast.Attribute)
            found[is_field, name_of(node.target)] = ast.unparse(node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            found[False, name_of(node)] = ast.unparse(node.annotation)
    return found


def asked(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose truth a node asks for, or that of their elements."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            yield node.test
        case ast.BoolOp():
            yield from node.values
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.comprehension():
            yield from node.ifs
        case ast.match_case(guard=ast.expr() as guard):
            yield guard
        case ast.Call(func=ast.Name(id="bool" | "any" | "all")):
            yield from node.args
        case ast.Call(func=ast.Name(id="filter"), args=[ast.Constant(value=None), items]):
            yield items
        case _:
            pass


def lines_that_ask(code: str) -> list[int]:
    """Return the lines of a module that test an exception for truth."""
    tree = ast.parse(code)
    annotations = declared(tree)

    def holds_one(node: ast.expr) -> bool:
        name = name_of(node)
        annotation = annotations.get((isinstance(node, ast.Attribute), name), "") if name else ""
        return annotation != "bool" and bool(CALLED_ONE.fullmatch(name) or DECLARED_ONE.fullmatch(annotation))

    found: set[int] = set()
    for node in ast.walk(tree):
        over_elements = isinstance(node, ast.Call) and name_of(node.func) != "bool"
        for each in asked(node):
            if CALLED_SOME.fullmatch(name_of(each)) if over_elements else holds_one(each):
                found.add(each.lineno)
    return sorted(found)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_exception_is_tested_for_truth(path: Path) -> None:
    code = path.read_text()
    lines = code.splitlines()

    assert [] == [f"{line}: {lines[line - 1].strip()}" for line in lines_that_ask(code)], "compare it with None"


@pytest.mark.parametrize(
    "code",
    [
        "if error: pass",
        "while self._failure: pass",
        "failure = failure or failing",
        "told = error and brief(error)",
        "if not run.cleanup_error: pass",
        "text = 'none' if error.__cause__ else 'one'",
        "found = [each for each in these if each.exception]",
        "if failure := run.failure: pass",
        "if other and (known and not last_error): pass",
        "assert error",
        "bool(exc)",
        "any(failures)",
        "filter(None, self._errors)",
        "def give_up(why: BaseException | None) -> None:\n    if why: pass",
        "late: Exception | None = None\nif late: pass",
        "class Run:\n    _late: Exception | None = None\nif run._late: pass",
        "try: pass\nexcept StopIteration as stop:\n    if stop: pass",
    ],
)
def test_a_test_for_truth_is_found(code: str) -> None:
    assert [len(code.splitlines())] == lines_that_ask(code)


@pytest.mark.parametrize(
    "code",
    [
        "if error is not None: pass",
        "if failures: pass",
        "if isinstance(error, OSError) and error.errno: pass",
        "if error is None or not error.args: pass",
        "def fail(*, error: bool) -> None:\n    if error: pass",
        "if is_error or is_cause: pass",
        "if run.failed: pass",
        "def end(cancelled: BaseException) -> None:\n    if self.cancelled: pass",
        "by = error.__cause__ if is_cause else error.__context__",
    ],
)
def test_what_asks_for_something_else_is_let_through(code: str) -> None:
    assert [] == lines_that_ask(code)
