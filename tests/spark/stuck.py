"""A function that never returns, in whose middle a worker is to be met."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.spark.waiting import until


@frozen
class Stuck:
    """The function, and a file in which it says who it is."""

    path: Path

    def function(self) -> Any:
        path = str(self.path)

        def stuck(_: Any) -> None:
            import os

            with open(f"{path}.part", "w") as file:
                file.write(str(os.getpid()))
            os.rename(f"{path}.part", path)
            threading.Event().wait()

        return stuck

    async def begun(self) -> int:
        """Wait until it has begun; give the number of the process."""
        await until(self.path.exists)
        return int(self.path.read_text())

    async def gone(self, process: int) -> None:
        """Wait until the process has ended."""
        await until(lambda: not Path(f"/proc/{process}").exists())
