"""The place where a run is shown: a terminal with rich, a terminal without, or a file such as a build log."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, TextIO

from attrs import define, field

from . import words
from .running import Run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Screen(Protocol):
    """The parts that the command line shows."""

    def busy(self, doing: str) -> AbstractContextManager[None]:
        """Show that something is being done, for the length of a block."""
        ...

    def text(self, text: str) -> None:
        """Show a text."""

    def watching(self) -> AbstractContextManager[Callable[[Run], None]]:
        """Show how far a run has come, for the length of a block."""
        ...

    def result(self, run: Run) -> None:
        """Show the result of a run."""


def choose_screen(out: TextIO) -> Screen:
    """Return the best screen that ``out`` and the installed packages allow."""
    if out.isatty() and find_spec("rich") is not None:
        from rich.console import Console

        return RichScreen(Console(file=out))
    return PlainScreen(out)


@define
class PlainScreen:
    """Lines of text; on a terminal one that is written over, else a few, further and further apart."""

    out: TextIO
    _due: float = field(init=False, default=1.0)

    @contextmanager
    def busy(self, doing: str) -> Generator[None]:
        """Show nothing: the output may be a file."""
        yield

    def text(self, text: str) -> None:
        """Write a paragraph."""
        self.out.write(text + "\n\n")
        self.out.flush()

    @contextmanager
    def watching(self) -> Generator[Callable[[Run], None]]:
        """Write over one line, or write a line after one second, two, four, and so on, and one at the end."""
        terminal = self.out.isatty()
        last = ""
        try:

            def tell(run: Run) -> None:
                nonlocal last
                last = f"{run.seconds:6.1f} s  {words.progress(run.snapshot, run.seconds)}"
                if terminal:
                    self.out.write(f"\r\x1b[K{last}")
                elif run.seconds >= self._due:
                    self._due *= 2
                    self.out.write(last + "\n")
                self.out.flush()

            yield tell
        finally:
            self.out.write("\n\n" if terminal else f"{last}\n\n")

    def result(self, run: Run) -> None:
        """Write the table, and the sum of it."""
        if run.emitted:
            self.out.write(words.table(run.shown) + "\n" + _cut(run) + "\n")
        self.out.write(words.summary(run.emitted, run.seconds) + "\n")
        self.out.flush()


def _cut(run: Run) -> str:
    which = "before" if run.tail else "more"
    return f"({run.cut:,} {which} not shown)\n" if run.cut else ""


@define
class RichScreen:
    """A terminal with a progress bar and a drawn table."""

    console: Console

    @contextmanager
    def busy(self, doing: str) -> Generator[None]:
        """Show a spinner."""
        with self.console.status(doing):
            yield

    def text(self, text: str) -> None:
        """Write a paragraph."""
        self.console.print(text + "\n", markup=False, highlight=False)

    @contextmanager
    def watching(self) -> Generator[Callable[[Run], None]]:
        """Show a pulsing line for the whole, because its length is unknown, and a bar for each job of a cluster."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

        line = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(finished_text=" "), BarColumn(bar_width=20), line, TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress:
            whole = progress.add_task("starting", total=None)
            bars: list[TaskID] = []

            def tell(run: Run) -> None:
                progress.update(whole, description=words.progress(run.snapshot, run.seconds))
                jobs = words.jobs(run.snapshot, run.seconds)
                while len(bars) < len(jobs):
                    bars.append(progress.add_task(""))
                for bar, job in zip(bars, jobs, strict=False):
                    progress.update(bar, description=job.text, completed=job.done, total=job.total)

            yield tell
            progress.update(whole, total=1, completed=1)

    def result(self, run: Run) -> None:
        """Draw the table, and write the sum of it."""
        if run.emitted:
            self.console.print(_rich_table(run))
            self.console.print(_cut(run), end="", highlight=False)
        self.console.print(words.summary(run.emitted, run.seconds), highlight=False)


def _rich_table(run: Run) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    columns = words.columns(run.shown)
    for name, values in columns.items():
        table.add_column(name, justify="right" if words.numeric(values) else "left")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(words.text(value)) for value in row))
    return table
