"""The crawler of the examples: every page once, gently, whatever the site does."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import httpx2
import pytest

from examples.crawler import Page, Site, UnavailableError, crawl, fetch_page, serving
from reactive_aio import Backoff
from reactive_aio.testing import run_virtual

from .origin import settled

PAGES = 30
START = "http://site/"


def links(number: int) -> tuple[str, ...]:
    return tuple(f"{START}{link}" for link in (2 * number + 1, 2 * number + 2, 0) if link < PAGES)


def number_of(url: str) -> int:
    return int(url.removeprefix(START) or 0)


async def test_every_page_of_a_site_is_visited_once_although_some_fail_and_stall() -> None:
    site = Site(PAGES)
    tasks = asyncio.all_tasks()
    async with serving(site) as url, httpx2.AsyncClient(verify=False) as client:
        flow = crawl(
            url,
            lambda url: fetch_page(client, url),
            max_concurrency=4,
            per_second=10_000,
            timeout=0.2,
            backoff=Backoff(0.01, max_retries=10),
        )
        pages = await flow.to_list()

    there = {f"{url}{number}" for number in range(PAGES)} | {url}
    assert there == {page.url for page in pages if not page.problem}
    assert {"status 404"} == {page.problem for page in pages} - {""}
    assert len(pages) == len({page.url for page in pages})
    assert all(site.asked[number] > 1 for number in (3, 7, 27))
    assert 1 < site.busiest
    await settled(lambda: len(asyncio.all_tasks()))
    assert tasks == asyncio.all_tasks()


def test_no_more_pages_are_fetched_at_a_time_and_a_second_than_is_said() -> None:
    begun: list[float] = []
    busy = Counter[str]()

    async def fetch(url: str) -> Page:
        begun.append(asyncio.get_running_loop().time())
        busy["now"] += 1
        busy["most"] = max(busy["most"], busy["now"])
        await asyncio.sleep(0.7)
        busy["now"] -= 1
        return Page(url, links=links(number_of(url)))

    async def main() -> list[Page]:
        return await crawl(START, fetch, max_concurrency=6, per_second=5).to_list()

    pages = run_virtual(main())
    assert PAGES + 1 == len(pages)  # the first has two names
    assert 6 >= busy["most"] > 1
    assert all(later - earlier > 0.999 for earlier, later in zip(begun, begun[5:], strict=False))


def test_a_page_is_tried_again_with_longer_waits_and_given_up_in_the_end() -> None:
    begun: list[float] = []

    async def fetch(url: str) -> Page:
        begun.append(asyncio.get_running_loop().time())
        if len(begun) % 2:
            raise UnavailableError
        await asyncio.Event().wait()
        return Page(url)

    async def main() -> list[Page]:
        backoff = Backoff(1.0, max_retries=3, jitter=0.0)
        return await crawl(START, fetch, timeout=10.0, backoff=backoff).to_list()

    assert [Page(START, problem="TimeoutError")] == run_virtual(main())
    assert [1.0, 12.0, 4.0] == [later - earlier for earlier, later in pairwise(begun)]


def test_what_is_wrong_with_the_crawler_itself_ends_it() -> None:
    async def fetch(url: str) -> Page:
        raise LookupError(url)

    with pytest.raises(LookupError, match="site"):
        run_virtual(crawl(START, fetch).drain())


def test_where_nobody_takes_the_pages_none_is_fetched() -> None:
    fetched: list[str] = []

    async def fetch(url: str) -> Page:
        fetched.append(url)
        return Page(url, links=links(number_of(url)))

    async def main() -> int:
        async with crawl(START, fetch, max_concurrency=3, per_second=1000).open() as pages:
            await anext(pages)
            await asyncio.sleep(3600)
            return len(fetched)

    assert run_virtual(main()) <= 4
