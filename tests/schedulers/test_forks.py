"""Pools in a process that is forked while they are open: errors that say so, and nothing hangs on either side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork there")

PROGRAM = """
import os, signal, sys
from reactive_aio import Flow, SchedulerClosedError, schedulers
from tests.schedulers import work

def flow_on(place):
    return Flow.range(3).publish_on(place).map(work.square)

def forked(act):
    child = os.fork()
    if not child:
        signal.alarm(30)  # to end what hangs, here and for who waits
        try:
            act()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, "the child has failed, or hangs"

def refused(act):
    try:
        act()
    except SchedulerClosedError as error:
        assert f"belong to process {os.getppid()}, but this process, {os.getpid()}, is a fork of it" in str(error), error
    else:
        raise AssertionError("it should have been refused")

def use(place):
    refused(flow_on(place).run_sync)
    refused(place.open)
    place.close()
    assert flow_on(MAKE()).run_sync() == [0, 1, 4]  # as a new one does

MAKE = lambda: schedulers.POOL
unused = MAKE()
with MAKE() as place:
    forked(lambda: use(place))
    forked(place.close)
    assert flow_on(place).run_sync() == [0, 1, 4]
    forked(lambda: use(place))  # when it has worked
    assert flow_on(place).run_sync() == [0, 1, 4]
assert flow_on(unused).run_sync() == [0, 1, 4]
forked(flow_on(unused).run_sync)  # of which nothing was left to be copied
print("done")
"""


@pytest.mark.costly
@pytest.mark.parametrize("pool", ["threads(2)", "processes(1)"])
def test_a_pool_at_work_is_refused_in_a_forked_process_and_goes_on_in_the_other(pool: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("POOL", pool)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )

    assert "done\n" == done.stdout, done.stderr


IMPORTS = """
import sys, threading

class Watch:
    def find_spec(self, name, path, target=None):
        if threading.current_thread() is not threading.main_thread():
            print(name, flush=True)

from reactive_aio import Flow, schedulers
from tests.schedulers import work

sys.meta_path.insert(0, Watch())
with schedulers.POOL as place:
    assert Flow.range(3).publish_on(place).map(work.square).run_sync() == [0, 1, 4]
"""


@pytest.mark.parametrize("pool", ["threads(2)", "processes(1)"])
def test_the_threads_of_a_pool_import_nothing_since_a_fork_may_come_in_the_middle(pool: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.replace("POOL", pool)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )

    assert (0, "") == (done.returncode, done.stdout), done.stderr
