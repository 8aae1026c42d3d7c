"""The streaming service in a process of its own, to be killed: python -m tests.spark.streaming.service PORT FOLDER."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from examples import sensors


def main() -> None:
    """Run until the service has sent all it has."""
    folder = Path(sys.argv[2])
    asyncio.run(sensors.run(sensors.begin(folder), int(sys.argv[1]), folder, sensors.NOW, batch=100))


if __name__ == "__main__":
    main()
