"""A stream of files, one for each micro-batch, in their order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attrs import define, field


@define
class Folder:
    """A folder of lines of JSON, followed by Spark."""

    spark: Any
    path: Path
    _written: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.path.mkdir()

    def add(self, *ids: int) -> None:
        """Add a file, which appears as a whole."""
        name = f"{self._written:04}.json"
        part = self.path / f".{name}"
        part.write_text("".join(f'{{"id": {n}, "name": "r{n}"}}\n' for n in ids))
        # Spark takes the oldest files first, and has seconds for their age on some file systems.
        os.utime(part, (self._written * 10.0 + 1e9,) * 2)
        part.rename(self.path / name)
        self._written += 1

    def stream(self) -> Any:
        """Return the streaming frame, of a file at a time."""
        options = {"maxFilesPerTrigger": "1", "maxFileAge": "100000d"}
        return self.spark.readStream.schema("id long, name string").options(**options).json(str(self.path))


def committed(checkpoint: str) -> set[int]:
    """Return the numbers of the batches that Spark has recorded as done."""
    return {int(path.name) for path in Path(checkpoint, "commits").glob("[0-9]*")}
