"""The options of a session on this machine, with Spark's builder played by hand."""

from __future__ import annotations

import atexit
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive_aio.spark import session
from reactive_aio.spark.session import QUICK_START, QUIET, local_session

JAVA = "spark.driver.extraJavaOptions"


class Builder:
    """Keeps the settings that it gets."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def config(self, name: str, value: str) -> Builder:
        self.told[name] = value
        return self


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    made = Builder()
    monkeypatch.setattr(session, "SparkSession", type("Session", (), {"builder": made}))
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    return made


def test_it_starts_quickly_and_says_nothing(builder: Builder) -> None:
    local_session("tests")

    assert f"{QUICK_START} {QUIET}" == builder.told[JAVA]


def test_it_says_nothing_with_a_jvm_as_on_a_cluster_either(builder: Builder) -> None:
    local_session("tests", quick_start=False)

    assert builder.told[JAVA] == QUIET


def test_options_of_ones_own_come_first(builder: Builder) -> None:
    local_session("tests", spark__ui__enabled="true", spark__driver__extraJavaOptions="-ea")

    assert ("true", "-ea") == (builder.told["spark.ui.enabled"], builder.told[JAVA])


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "no name": ((None,), {}, TypeError, r"local_session\(app_name=None\): app_name is a text, not NoneType"),
    "a number of slots": (("tests", 4), {}, TypeError, r"local_session\(master=4\): master is a text, not int"),
    "a text for a flag": (
        ("tests",),
        {"quick_start": "no"},
        TypeError,
        "quick_start='no'.: quick_start is True or False",
    ),
    "an option of none": (
        ("tests",),
        {"spark__ui__port": None},
        TypeError,
        "spark__ui__port=None.: an option is a text",
    ),
    "half a character": (("tests",), {"spark__a": "\ud800"}, ValueError, "spark__a has no UTF-8"),
}


@pytest.mark.parametrize(("given", "options", "kind", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_before_spark_starts(
    builder: Builder, given: tuple[Any, ...], options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        local_session(*given, **options)

    assert {} == builder.told
