"""A program that writes a run and is killed at a moment, given by its name: ``python -m tests.spark.sink.killed FOLDER MOMENT``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from reactive_aio import Flow
from reactive_aio.spark.session import local_session
from reactive_aio.spark.sink import Files
from reactive_aio.spark.sink._files import MANIFEST, REPLACES

COUNT = 2000
MOMENTS = {"the first element": 0, "a late element": COUNT - 1, "the manifest": 0, "the commit": 0, "the removal": 0}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killed(Files):
    """Has a moment between two calls into the file system at which the process ends."""

    moment = ""

    def _note(self, folder: str, name: str, what: object) -> None:
        if self.moment == "the manifest" and name == MANIFEST:
            kill()
        super()._note(folder, name, what)

    def finish(self) -> None:
        if self.moment == "the commit":
            kill()
        super().finish()

    def _read(self, files: Any, folder: str, name: str) -> Any:
        found = super()._read(files, folder, name)
        if self.moment == "the removal" and name == REPLACES:
            files.delete(self._path(found[0]), True)
            kill()
        return found


def written(folder: str, moment: str) -> Any:
    session = local_session("killed")
    driver, last = os.getpid(), MOMENTS.get(moment) if "element" in moment else None

    def numbered(row: Any) -> int:
        if row[0] == last:
            os.kill(driver, signal.SIGKILL)
        return int(row[0])

    Killed.moment = moment
    files = Killed(session, folder, run="new", mode="overwrite")
    numbers = Flow.from_spark(session.range(0, COUNT, 1, 4), as_=tuple).map(numbered)
    return numbers.run_sync(lambda flow: flow.to_spark(files, "n long", size=None))


if __name__ == "__main__":
    written(sys.argv[1], sys.argv[2])
