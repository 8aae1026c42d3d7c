"""The example service, as a process of its own: what a browser draws, what clients upload, and what SIGTERM leaves."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from examples.service import market
from examples.service.load import Load, orders
from reactive_aio.web import connect
from tests.web.javascript import browser

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0
"""Seconds after which what should come at once counts as lost; a browser on a busy machine takes some to start."""

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the service is stopped by SIGTERM"),
    pytest.mark.asyncio(loop_factories=["asyncio"]),  # the loop under test is that of the process
]


@define
class Running:
    """A service, and a client of it."""

    process: asyncio.subprocess.Process
    load: Load

    async def status(self) -> dict[str, int]:
        page = await self.load.get("/status")
        told: dict[str, int] = json.loads(page.partition("\r\n\r\n")[2])
        return told

    async def stopped(self) -> tuple[int, str, str]:
        """Send SIGTERM; give the exit code and what the service has said."""
        self.process.send_signal(signal.SIGTERM)
        said, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, said.decode(), errors.decode()


@asynccontextmanager
async def service(ledger: Path) -> AsyncGenerator[Running]:
    """Start it on a port that is free."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.service", "--port", "0", "--ledger", str(ledger)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
            yield Running(process, Load("127.0.0.1", int(line.rpartition(":")[2].strip("/\n"))))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def ids(ledger: Path) -> list[str]:
    return [json.loads(line)["id"] for line in ledger.read_text().splitlines()]


async def test_a_stop_under_load_fills_all_orders_that_are_taken_and_ends_all_readers(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"

    async def endless(name: str) -> None:
        """Upload until the service ends it; the answer may be lost where the service closes on unread orders."""
        with suppress(OSError, ValueError):
            await running.load.upload({"id": f"{name}{n}", "symbol": "ANT", "quantity": 1} for n in count())

    async def page() -> list[Any]:
        async with connect(f"ws://127.0.0.1:{running.load.port}/streams") as connection:
            prices: list[Any] = (
                await connection.read("prices", "BEE", prefetch=1).on_error_complete(errors=OSError).to_list()
            )
        return prices

    async with service(ledger) as running:
        assert 100 == await running.load.upload(orders("whole", 100))
        uploading = [asyncio.create_task(endless(f"endless{n}-")) for n in range(3)]
        reading = [asyncio.create_task(running.load.read()) for _ in range(3)]
        pages = [asyncio.create_task(page()) for _ in range(3)]
        # One reader more is there: what keeps the events for those who come back.
        while (told := await running.status())["taken"] < 300 or told["readers"] < 4 or not running.load.seen["prices"]:
            pass
        code, said, errors = await running.stopped()
        await asyncio.gather(*uploading, *reading)
        drawn = await asyncio.gather(*pages)

    filled = ids(ledger)
    assert (0, "") == (code, errors)
    assert f"stopped: {len(filled)} orders taken, {len(filled)} filled\n" == said
    assert {f"whole{n}" for n in range(100)} <= {*filled}
    assert len({*filled}) == len(filled)
    assert {"BEE"} >= {price["symbol"] for prices in drawn for price in prices}
    with pytest.raises(ConnectionError):
        await running.load.get("/status")


async def test_uploads_have_limits_and_answers_repeat_nothing_of_what_was_sent(tmp_path: Path) -> None:
    good = {"id": "a", "symbol": "ANT", "quantity": 1}

    async def answer(*lines: object) -> tuple[str, str]:
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        headers = f"Content-Length: {len(body)}\r\n"
        async with running.load.request("POST", "/orders", headers) as (reader, writer):
            writer.write(body)
            status, _, rest = (await reader.read()).decode().partition("\r\n")
        return status.split()[1], rest.partition("\r\n\r\n")[2]

    async with service(tmp_path / "ledger") as running:
        assert ("200", '{"taken":2,"error":""}') == await answer(good, good)
        status, text = await answer({**good, "symbol": "<secret>"})
        assert ("400", 0) == (status, json.loads(text)["taken"])
        assert "secret" not in text
        assert "413" == (await answer({**good, "id": "x" * 2_000}))[0]
        code, _, errors = await running.stopped()

    assert (0, "") == (code, errors)


@pytest.mark.costly
async def test_a_crawler_finds_the_pages_of_the_service(tmp_path: Path) -> None:
    async with service(tmp_path / "ledger") as running:
        found = await running.load.crawl()
        await running.stopped()

    assert {"/", "/status", "/prices/", "/static/reactive-streams.js"} == found


async def test_a_page_draws_prices_that_move_by_events_and_by_a_websocket(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.async_api", reason="needs the package playwright")
    command = browser()
    errors: list[str] = []
    async with service(tmp_path / "ledger") as running, playwright.async_playwright() as tools:
        chromium = await tools.chromium.launch(executable_path=command, args=["--no-sandbox"])
        page = await chromium.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(f"http://127.0.0.1:{running.load.port}/")
        for output in ("events", "socket"):
            shown = f"document.querySelector('#{output}')"
            await page.wait_for_function(f"Number({shown}.dataset.count) >= 3", timeout=PATIENCE * 1000)
            before = await page.evaluate(f"{shown}.value")
            await page.wait_for_function(f"{shown}.value !== {json.dumps(before)}", timeout=PATIENCE * 1000)
        for canvas in ("all", "one"):
            drawn = "getContext('2d').getImageData(0, 0, 800, 200).data.some((each) => each > 0)"
            assert await page.evaluate(f"document.querySelector('#{canvas}').{drawn}")
        await page.select_option("#symbol", "CAT")
        await page.wait_for_function(
            "document.querySelector('#socket').value.startsWith('CAT')", timeout=PATIENCE * 1000
        )
        code, _, said = await running.stopped()
        await page.wait_for_function("document.title === 'market (ended)'", timeout=PATIENCE * 1000)
        await chromium.close()

    assert (0, "", []) == (code, said, errors)


async def test_the_same_seed_makes_the_same_prices() -> None:
    assert [*islice(market.ticks(7), 100)] == [*islice(market.ticks(7), 100)]
    assert [*islice(market.ticks(7), 100)] != [*islice(market.ticks(8), 100)]


async def test_an_engine_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE", "steam")
    with pytest.raises(ValueError, match=r"ENGINE=steam: it is asyncio or spark"):
        market.engine()
