"""Run the tests on a cluster, and those that kill a service KILLS times, if that is said.

    python -m tests.spark_cluster [arguments of pytest]

The cluster is SPARK_CLUSTER. Else it is one of several machines, where this one can have them in namespaces of its network,
or a local one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from tests.spark_cluster import hosts

KILLS = sorted(map(str, Path("tests/spark/streaming").glob("test_kills*.py")))


def main(arguments: list[str]) -> NoReturn:
    """Choose the tests and the cluster."""
    chosen = any(Path(each.partition("::")[0]).exists() for each in arguments)
    tests = [sys.executable, "-m", "pytest", "-q", *([] if chosen else ["tests/spark_cluster", *KILLS]), *arguments]
    if "SPARK_CLUSTER" not in os.environ:
        lacking = hosts.lacking()
        if not lacking:
            sys.exit(hosts.main(tests))
        os.environ["SPARK_CLUSTER"] = "local-cluster[2,1,1024]"
        print(f"one machine, no tests of several: {lacking}", file=sys.stderr)  # noqa: T201
    os.execv(sys.executable, tests)


main(sys.argv[1:])
