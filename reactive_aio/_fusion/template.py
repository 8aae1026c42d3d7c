"""Templates: the few lines that an operator adds to the loop of its region."""

from __future__ import annotations

import textwrap

from attrs import field, frozen


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines of a text without their common indentation."""
    return tuple(textwrap.dedent(text).strip("\n").splitlines())


@frozen(cache_hash=True)
class Template:
    """The lines that a stage adds to the loop of its region.

    ``item`` is the element, to be rebound at will: the stages that follow do so too. ``$rest``, on a line of its own,
    stands for these stages, at its indentation. Without it nothing is passed on. ``$name`` is the attribute ``name`` of
    the transform, looked up once. ``$self`` is the transform. ``$stop`` ends the region's input for good.

    An attribute named in ``local`` lives in a local variable during a pass, which is quicker to change, and is
    written back when the pass ends. It is not to be read from outside while a pass is suspended. One in ``tally``
    does so too, but starts from zero, and what it comes to is added: small numbers cost no memory, and many passes are
    no longer.

    ``at_once`` are the lines in place of the others where the stage is the first of its region, and elements come in a list.
    ``some`` is an iterator over several of them, which the lines read to its end. They pass on no more than they read.

    ``plain`` says that the lines run none of the user's code, so that no element takes much longer than the one before.
    """

    lines: tuple[str, ...] = field(converter=lines_of)
    local: tuple[str, ...] = ()
    tally: tuple[str, ...] = ()
    plain: bool = False
    at_once: str = ""

    single: bool = field(init=False, eq=False, repr=False)
    """Whether it is plain that it passes on at most one element for each."""
    mute: bool = field(init=False, eq=False, repr=False)
    """Whether it passes on nothing, and so never has to wait for demand."""

    def __attrs_post_init__(self) -> None:
        words = [line.split()[0] for line in self.lines]
        object.__setattr__(self, "mute", "$rest" not in words)
        object.__setattr__(self, "single", words.count("$rest") <= 1 and not {"for", "while"} & {*words})
