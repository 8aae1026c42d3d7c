"""How these tests run."""

from tests.spark.streaming import conftest

pytest_asyncio_loop_factories = conftest.pytest_asyncio_loop_factories
