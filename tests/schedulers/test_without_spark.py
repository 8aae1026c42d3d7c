"""Without PySpark everything else can be imported, and the one thing that needs it says so."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from reactive_aio import schedulers


def test_the_scheduler_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "pyspark" else find(name, *rest)
    )
    for name in [name for name in sys.modules if name.startswith("reactive_aio.spark")]:
        monkeypatch.delitem(sys.modules, name)
    session: Any = object()

    with pytest.raises(ImportError, match=r"pip install 'reactive_aio\[spark\]'"):
        schedulers.spark(session)
