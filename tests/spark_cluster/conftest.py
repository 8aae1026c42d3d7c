"""A cluster of several JVMs: a driver, and executors that have nothing of it but what Spark brings them."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

import pytest

import reactive_aio
from tests.conftest import LOOPS
from tests.spark.jobs import active_jobs
from tests.spark_cluster.profile import CLUSTER, HOSTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark__driver__host": "driver",
    "spark__driver__bindAddress": "0.0.0.0",
    "spark__driver__port": "7078",
    "spark__driver__blockManager__port": "7079",
    # Of an address that is none of Spark's.
    "spark__reactive_aio__host": "driver-too",
    "spark__reactive_aio__ports": "41000-41031",
    "spark__executor__memory": "700m",
    # How soon Spark takes a machine for lost; by default after two to three minutes.
    "spark__executor__heartbeatInterval": "2s",
    "spark__network__timeout": "10s",
    "spark__network__timeoutInterval": "2s",
}


def pytest_asyncio_loop_factories(config: pytest.Config) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """On one loop: what is tested here is the cluster."""
    wanted = config.getoption("--loop")
    name = "asyncio" if wanted == "all" else wanted
    return {name: LOOPS[name]}


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is shipped: a zip of its modules."""
    source = Path(reactive_aio.__file__).parent
    target = tmp_path_factory.mktemp("shipped") / "reactive_aio.zip"
    with ZipFile(target, "w") as file:
        for path in sorted(source.rglob("*.py")):
            file.write(path, path.relative_to(source.parent))
    return target


@pytest.fixture(scope="session")
def spark(package: Path) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    from reactive_aio.spark.session import local_session

    # Executors are killed on purpose here, and what Spark has to say about that is not wanted.
    session = local_session(
        "cluster tests",
        CLUSTER,
        spark__log__level="OFF",
        spark__sql__shuffle__partitions="3",
        # Those that are killed here are no reason to give the cluster up.
        spark__deploy__maxExecutorRetries="-1",
        # Ours would be imported from where the workers' Python is, and the package with it, before they have the one shipped.
        spark__python__daemon__module="pyspark.daemon",
        quick_start=True,
        **(SETTINGS if HOSTS else {}),
    )
    session.sparkContext.addPyFile(str(package))
    logs = Path(_home(session), "work", str(session.sparkContext.applicationId))
    yield session
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)


def _home(session: Any) -> str:
    """Where the workers of a local cluster keep the logs of their executors."""
    return str(session.sparkContext._jvm.System.getenv("SPARK_HOME"))


@pytest.fixture
def sc(spark: SparkSession) -> Any:
    return spark.sparkContext


@pytest.fixture
def nothing_left(sc: Any) -> Iterator[None]:
    yield
    assert not [thread.name for thread in threading.enumerate() if "reactive_aio" in thread.name]
    assert not active_jobs(sc)
