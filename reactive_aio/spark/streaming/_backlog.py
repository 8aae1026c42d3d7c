"""The rows of a feed that Spark may still request: a part of the stream, as batches of Arrow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, field

from ..._core.containers import new_deque, new_list
from ..._core.guard import FAILURES, as_failure
from ...errors import SparkJobError

# `Any` stands for Arrow, whose stubs know it by halves, and for elements.

PIECE: Final = 1024
"""Elements that are turned into columns at a time: only as many as the event loop can wait for."""


@define(eq=False)
class Backlog:
    """Rows by their place in the stream. The feed bounds their number: the requested without the committed ones."""

    _table: Callable[[Sequence[Any], int], Any]
    """Turns elements into a table, from the index of the first."""
    first: int = 0
    """The first row that is kept."""
    end: int = field(init=False)
    """The place after the last row."""
    error: BaseException | None = field(init=False, default=None)
    """Why an element is not a row. Later elements do not count."""
    _pieces: deque[tuple[int, Any]] = field(init=False, factory=new_deque)
    _new: list[Any] = field(init=False, factory=new_list)

    def __attrs_post_init__(self) -> None:
        self.end = self.first

    def add(self, item: Any) -> None:
        """Take an element."""
        self._new.append(item)
        self.end += 1
        if len(self._new) >= PIECE:
            self.settle()

    def settle(self) -> None:
        """Turn the arrived elements into columns. Stop at the first one that does not fit, or can't be read."""
        new, self._new = self._new, []
        start = self.end - len(new)
        if not new or self.error is not None:
            self.end = start
            return
        try:
            self._keep(start, self._table(new, start))
        except FAILURES as error:
            self.error, self.end = as_failure(error), start
            with suppress(FAILURES):
                for item in new:
                    self._keep(self.end, self._table([item], self.end))
                    self.end += 1

    def _keep(self, start: int, table: Any) -> None:
        self._pieces.append((start, table.combine_chunks().to_batches()[0]))

    def check(self, start: int) -> None:
        """Raise if rows from a place on are gone."""
        if start < self.first:
            raise SparkJobError(
                f"the query asks for rows from {start}, but the rows before {self.first} are committed and gone. "
                "Use a feed for one query only, and read it once"
            )

    def between(self, start: int, end: int) -> list[Any]:
        """Return the rows between two places."""
        self.check(start)
        if end > self.end:
            raise SparkJobError(f"the query asks for rows up to {end}, but only {self.end} have arrived")
        self.settle()
        found: list[Any] = []
        for at, piece in self._pieces:
            low, high = max(start - at, 0), min(end - at, piece.num_rows)
            if low < high:
                found.append(piece.slice(low, high - low))
        return found

    def drop(self, end: int) -> None:
        """Forget the rows before a place."""
        end = min(end, self.end)
        if end <= self.first:
            return
        self.settle()
        self.first = end
        pieces = self._pieces
        while pieces and pieces[0][0] + pieces[0][1].num_rows <= end:
            pieces.popleft()
