"""Makes docs/operators.md and its diagrams: ``python -m tests.catalogue.page`` writes them.

The page is made of the catalogue and of the examples. Measurements check the catalogue. Each example is a test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from reactive_aio import Backoff, Flow, KeyedFlow
from reactive_aio._catalogue import PEERS, Completes, Fails, Operator, operators
from reactive_aio._catalogue.docstring import read
from reactive_aio._fusion import InTurn, Placed, Requirement, Stage
from reactive_aio._plan import PublishOn, Pushed, SubscribeOn

from . import sources
from .examples import Example, all_examples
from .picture import picture
from .recorded import drawn, recorded_examples
from .running import Ran, ran

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "operators.md"
PICTURES = DOCS / "pictures" / "operators"

HEAD = """# The operators

This page is generated (`python -m tests.catalogue.page`) from the traits that each operator declares. Tests compare these with
measurements. Each diagram is a run on virtual time, and its text is a test. A cluster has no virtual time, so the diagrams of
`from_spark` and `to_spark` are records of runs, which tests run again.

How to read a diagram: time goes from left to right, in seconds. A lane is a flow, with its elements, its end ┃ or its
failure ✕. Below the lane stands the demand on it: ↑ `request(n)`, or a cancel. The box is the call. Above it are the flows that it
reads. Below it are its own signals, and the requests of its subscriber. Signals of one moment overlap. Faint elements were
discarded, or not made any more. Calls of the function `tell` have a lane of their own. `slow(n)` gives `n` after `n` seconds.
`attempts(a, b)` is another flow at each subscription. The signals below the box are those of `subscriber`.

In the tables, `d` is the demand. *Asks*: the demand on the flow that is read when `d` elements are wanted and none has come yet.
*Keeps*: the bound of the elements that are taken and neither passed on nor dropped. *A failure*: of the flow that is read, or the
first of several. *Runs*: *fused* is in the region of the flow that it reads. *Apart* is between two regions, where the flow ends that
it is called on. *Spark*: whether it runs in the workers of a cluster behind `from_spark`. *In parts* is a share of it; *in turn* is
one partition after another.
"""


@cache
def examples() -> dict[str, list[tuple[Example, Ran]]]:
    """Return the examples by operator, as they are written and as they ran."""
    found: dict[str, list[tuple[Example, Ran]]] = {}
    for example in all_examples():
        found.setdefault(example.operator, []).append((example, ran(example)))
    for example in recorded_examples():
        found.setdefault(example.operator, []).append((example, drawn(example)))
    return found


def families() -> list[tuple[type, list[Operator]]]:
    """Return the operators by family, those of the flow itself behind the others and before the ends."""
    found: dict[type, list[Operator]] = {}
    for each in sorted(operators(), key=lambda each: (each.is_end, each.family is Flow)):
        found.setdefault(each.family, []).append(each)
    return list(found.items())


def place(operator: Operator) -> tuple[str, str]:
    """Return where an operator runs, by the flow of its example, and whether Spark's workers run it."""
    if operator.is_end:
        return "where it is awaited", "in parts" if "Spark" in operator.told.parts else ""
    flow = examples()[operator.name][0][1].flow
    if flow is None:
        return "in Spark's workers", ""
    last: Placed[object] = flow.__nodes__.steps[-1] if flow.__nodes__.steps else flow.__nodes__.source
    if operator.name == "through":
        return "as what it applies", ""
    match last.operator:
        case Stage():
            return "fused", spark(last.operator)
        case PublishOn():
            return "what follows, on the scheduler", ""
        case SubscribeOn():
            return "the source, on the scheduler", ""
        case Pushed():
            return "apart", ""
        case _:
            return "fused", ""


def spark(stage: Stage[object, object]) -> str:
    """Return whether Spark's workers run a stage."""
    if not stage.needs_whole_stream:
        return "in the workers"
    if isinstance(stage, InTurn):
        return "in turn"
    if stage.requirement is Requirement.KEYED:
        return "shuffled by key"
    return "" if getattr(stage, "in_parts", lambda: None)() is None else "in parts"


def row(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |\n"


def code(expression: str) -> str:
    """Show an expression."""
    return f"`{expression}`" if expression else ""


def link(operator: Operator) -> str:
    """Link to the section of an operator."""
    return f"[`{operator.name}`](#{operator.name})"


def semantics(family: list[Operator]) -> str:
    """Return the table of what the operators of a family do."""
    table = row(["", "asks", "keeps", "completes", "a failure", "runs", "Spark"]) + row(["---"] * 7)
    for each in family:
        traits = each.traits
        asks = code(traits.demand)
        keeps = "" if traits.keeps == "0" else code(traits.keeps)
        if traits.others:
            asks += " of each" if traits.others == traits.demand else f", of others {code(traits.others)}"
            keeps += " of each" if keeps else ""
        failure = "" if traits.fails is Fails.NONE else traits.fails.value
        completes = "" if traits.completes is Completes.NEVER else traits.completes.value
        table += row([link(each), asks, keeps, completes, failure, *place(each)])
    return table


def names() -> str:
    """Return the table of the names in other libraries."""
    table = row(["", *PEERS]) + row(["---"] * (len(PEERS) + 1))
    for each in operators():
        told = each.peers
        table += row([link(each), *(", ".join(map(code, told.get(peer, ()))) for peer in PEERS)])
    return table


def pictures_of(operator: Operator) -> dict[str, str]:
    """Return the diagrams of an operator, by the names of their files."""
    name = operator.name.strip("_")
    return {
        f"{name}{f'_{number}' if number > 1 else ''}.svg": picture(run)
        for number, (_, run) in enumerate(examples().get(operator.name, []), 1)
    }


def section(operator: Operator) -> str:
    """Return the section of an operator."""
    told = operator.told
    lines = [f"### {operator.name}", "", f"`{signature(operator.name)}`", "", single(told.sentence), ""]
    lines += [single(told.details), ""] if told.details else []
    shown = zip(pictures_of(operator), examples().get(operator.name, []), strict=True)
    lines += [f"![{each.call}](pictures/operators/{file})" for file, (each, _) in shown]
    if operator.name in {example.operator for example in recorded_examples()}:
        lines += ["", "*Recorded on Spark: time goes in steps, of which each signal is one.*"]
    lines.append("")
    lines += [f"- **{head}**: {single(text)}" for head, text in told.parts.items()]
    if told.origin:
        also = f"; {operator.traits.names}" if operator.traits.names else ""
        lines += [f"- **Elsewhere**: {single(told.origin + also)}."]
    return "\n".join(lines).rstrip() + "\n\n"


def signature(name: str) -> str:
    """Return the call of a method, with its parameters and their defaults and without types."""
    method = getattr(Flow, name)
    owner = "Flow" if inspect.ismethod(method) else "flow"
    found = inspect.signature(getattr(method, "__func__", method))
    return owner + "." + name + sources.call(found.replace(parameters=list(found.parameters.values())[1:]))


def single(text: str) -> str:
    """Return the text of a docstring in the quotes of Markdown."""
    return text.replace("``", "`")


def helper(kind: type, methods: Iterable[str] = ()) -> str:
    """Return the section of a class that operators take or return, with its methods."""
    lines = [f"## {kind.__name__}", "", *described(kind)]
    for name in methods:
        lines += [f"### {kind.__name__}.{name}", "", *described(vars(kind)[name])]
    return "\n" + "\n".join(lines)


def described(documented: object) -> list[str]:
    """Return the docstring of a class or a method, without its example, in lines of Markdown."""
    told = read(inspect.getdoc(documented) or "")
    lines = [single(told.sentence), ""] + ([single(told.details), ""] if told.details else [])
    lines += [f"- **{head}**: {single(text)}" for head, text in told.parts.items()]
    lines += [f"- **Elsewhere**: {single(told.origin)}."] if told.origin else []
    return lines if not lines[-1] else [*lines, ""]


def public_methods(kind: type) -> list[str]:
    """Return the names of the methods that a class defines for its users."""
    return [name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")]


def page() -> str:
    """Return the whole page."""
    text = HEAD + "\n" + "".join(map(contents, families()))
    text += "- What they take and give: [`KeyedFlow`](#keyedflow), [`Backoff`](#backoff)\n"
    text += sources.contents()
    for family, members in families():
        text += f"\n## {heading(family)}\n\n{semantics(members)}\n" + "".join(map(section, members)).rstrip() + "\n"
    text += helper(KeyedFlow, public_methods(KeyedFlow)).rstrip() + "\n" + helper(Backoff).rstrip() + "\n"
    text += sources.sections(described)
    return text + f"\n## The names elsewhere\n\n{names()}"


def contents(family: tuple[type, list[Operator]]) -> str:
    """Return the line of a family in the contents."""
    return f"- {heading(family[0])}: {', '.join(map(link, family[1]))}\n"


def heading(family: type) -> str:
    """Return the heading of a family: what its docstring begins with."""
    first = re.split(r"[.:]", inspect.getdoc(family) or "")[0]
    return "Operators of one's own" if family is Flow else first


@cache
def pictures() -> dict[str, str]:
    """Return all diagrams, by the names of their files."""
    return {file: text for each in operators() for file, text in pictures_of(each).items()}


def write() -> None:
    """Write the page and its diagrams, and remove what is not theirs."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for file, text in pictures().items():
        (PICTURES / file).write_text(text, encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
