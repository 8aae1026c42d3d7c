"""Context variables between processes. A module has each as a global, and it is set where the functions run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextvars import Context, ContextVar, Token
from typing import Any

from attrs import frozen

Place = tuple[str, str]
"""The module, and the name in it."""
Values = list[tuple[Place, Any]]
Tokens = list[tuple[ContextVar[Any], Token[Any]]]


@frozen
class Variable:
    """A context variable, and where a worker finds it."""

    variable: ContextVar[Any]
    place: Place

    @staticmethod
    def of(method: str, variable: ContextVar[Any]) -> Variable:
        """Find a variable. Refuse at once what no worker could find."""
        if not isinstance(variable, ContextVar):  # pyright: ignore[reportUnnecessaryIsInstance] - not all callers check
            raise TypeError(f"{method}(context=...) takes context variables, not {type(variable).__name__}")
        for module_name, module in tuple(sys.modules.items()):
            for name, value in tuple(getattr(module, "__dict__", {}).items()):
                if value is variable:
                    return Variable(variable, (module_name, name))
        raise TypeError(
            f"{method}(context=...): {variable.name!r} is no global of a module, so a worker process can't find it"
        )


def variables(method: str, given: Iterable[ContextVar[Any]]) -> tuple[Variable, ...]:
    """Find variables."""
    one: Any = given
    if isinstance(one, ContextVar):
        raise TypeError(f"{method}(context={one.name}): context takes a list of variables. Write context=[{one.name}]")
    if isinstance(one, (str, bytes)) or not isinstance(one, Iterable):
        raise TypeError(f"{method}(context={one!r}): context takes a list of variables, not {type(one).__name__}")
    return tuple(Variable.of(method, each) for each in given)


def values_in(context: Context, variables: Iterable[Variable]) -> Values:
    """Return the values that variables have in a context."""
    return [(each.place, context[each.variable]) for each in variables if each.variable in context]


def set_values(values: Values) -> Tokens:
    """Set variables in the current context, importing the modules that have them."""
    return [(variable, variable.set(value)) for variable, value in ((_find(place), value) for place, value in values)]


def reset(tokens: Tokens) -> None:
    """Undo what `set_values` has set."""
    for variable, token in tokens:
        variable.reset(token)


def _find(place: Place) -> ContextVar[Any]:
    module, name = place
    __import__(module)
    found: ContextVar[Any] = getattr(sys.modules[module], name)
    return found
