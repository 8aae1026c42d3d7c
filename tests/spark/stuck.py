"""A function that never returns, in whose middle a worker is to be met."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from attrs import frozen

LIMIT = 60.0
"""Seconds for what has to happen by itself."""


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
        async with asyncio.timeout(LIMIT):
            while not self.path.exists():
                await asyncio.sleep(0.005)
        return int(self.path.read_text())

    async def gone(self, process: int) -> None:
        """Wait until the process has ended."""
        async with asyncio.timeout(LIMIT):
            while Path(f"/proc/{process}").exists():
                await asyncio.sleep(0.005)
