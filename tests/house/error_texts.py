"""Find the texts of errors, notes and warnings in Python code, without running it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, field, frozen

WORD: Final = "x"
"""A stand-in for a value that is only known when the code runs."""
SAY: Final = {"add_note", "warn", "warning", "check_function", "drop_error", "_Unfit", "_failed", "_mismatch", "fail"}
"""Functions beside the types of errors, whose arguments are texts for users."""
TEXTS: Final = {"STAYS", "instead", "why", "hint"}
"""Names whose values are texts, wherever they are passed on."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Values = dict[str, list[ast.expr]]


@frozen
class Text:
    """A text for users, with the place where it is written."""

    file: str
    line: int
    text: str


def is_text(node: ast.AST) -> bool:
    """Return whether an expression is a text, or is put together of texts."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add))


def assigned(nodes: Iterable[ast.AST]) -> Values:
    """Return the expressions that are assigned to each name."""
    found: Values = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id].append(node.value)
    return found


def constants(trees: Iterable[ast.Module]) -> Values:
    """Return what modules assign to their names; a name that several modules have is a list of them."""
    found: Values = defaultdict(list)
    for tree in trees:
        for name, values in assigned(tree.body).items():
            found[name] += values
    return found


@define
class Collector(ast.NodeVisitor):
    """Reads one module."""

    file: str
    known: Values
    """The constants of all modules."""
    texts: list[Text] = field(factory=list[Text])
    _local: Values = field(factory=dict[str, list[ast.expr]])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Read a function."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Read a coroutine function."""
        self._function(node)

    def _function(self, node: Function) -> None:
        """Read a function, with the names that it and those around it assign."""
        before = self._local
        self._local = {**before, **assigned(ast.walk(node))}
        self.generic_visit(node)
        self._local = before

    def visit_Call(self, node: ast.Call) -> None:
        """Take the arguments of an error, or of a function that says something."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name.endswith(("Error", "Violation", "Warning")) or name in SAY:
            for given in [*node.args, *(each.value for each in node.keywords)]:
                self._take(given)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Take a text that is kept until somebody raises it."""
        if isinstance(node.target, ast.Name) and node.target.id in TEXTS and node.value is not None:
            self._take(node.value)
        self.generic_visit(node)

    def _take(self, given: ast.expr) -> None:
        for each in self._parts(given):
            for text in self.rendered(each, ()):
                if text.count(" ") > 1:
                    self.texts.append(Text(self.file, each.lineno, text))

    def _parts(self, given: ast.expr) -> Iterator[ast.expr]:
        if is_text(given) or isinstance(given, (ast.Name, ast.IfExp)):
            yield given
        else:
            for child in ast.iter_child_nodes(given):
                if isinstance(child, ast.expr):
                    yield from self._parts(child)

    def rendered(self, node: ast.expr, seen: tuple[str, ...]) -> list[str]:
        """Return the texts that an expression may be: one for each value of a name, and both sides of a condition."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=values):
                return self._joined(values, seen)
            case ast.FormattedValue(value=value):
                return self.rendered(value, seen)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], seen)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.rendered(body, seen), *self.rendered(orelse, seen)]
            case ast.Name(id=name) if name not in seen:
                found = self._local.get(name) or self.known.get(name, [])
                texts = [text for each in found for text in self.rendered(each, (*seen, name))]
                return list(dict.fromkeys(texts)) or [WORD]
            case _:
                return [WORD]

    def _joined(self, values: Iterable[ast.expr], seen: tuple[str, ...]) -> list[str]:
        texts = [""]
        for each in values:
            texts = [before + text for before in texts for text in self.rendered(each, seen)][:64]
        return texts


def texts_of(sources: dict[str, str]) -> list[Text]:
    """Return all texts of files by name."""
    trees = {name: ast.parse(source) for name, source in sources.items()}
    known, found = constants(trees.values()), list[Text]()
    for name, tree in trees.items():
        collector = Collector(name, known)
        collector.visit(tree)
        found += collector.texts
    return list(dict.fromkeys(found))
