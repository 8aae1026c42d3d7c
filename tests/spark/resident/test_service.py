"""The example service scores its prices on Spark as it does on a thread."""

from __future__ import annotations

from typing import Any

import pytest

from examples.service import market
from reactive_aio.spark import session

pytestmark = pytest.mark.spark


async def test_prices_are_scored_on_spark_as_on_a_thread(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "local_session", lambda _: spark)

    async def scored(engine: str) -> list[market.Quote]:
        monkeypatch.setenv("ENGINE", engine)
        return await market.quotes(3, 1_000).take(30).to_list()

    assert await scored("asyncio") == await scored("spark")
