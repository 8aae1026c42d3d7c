"""What tests of the runtime share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reactive_aio.runtime import emission
from reactive_aio.segments import fuse, run


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Have the clock of regions stand where the test sets it, so that no turn is cut short on a busy machine."""
    now = [0.0]
    caches = (fuse._generate, fuse._through)
    for module in (emission, fuse, run):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    for cache in caches:
        cache.cache_clear()
    yield now
    for cache in caches:
        cache.cache_clear()
