"""The event loop listens at the address that Spark has for its driver, of either version of IP."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from reactive_aio.spark._task.connecting import listen
from reactive_aio.spark.streaming._reception import listen_at


def has_six() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


of_six = pytest.mark.skipif(not has_six(), reason="this machine has no IPv6")

BOUND = {
    "nothing": {},
    "the address": {"spark.driver.bindAddress": "[::1]"},
    "the address without brackets": {"spark.driver.bindAddress": "::1"},
    "any": {"spark.driver.bindAddress": "::"},
}


def of_cluster(**conf: str) -> Any:
    return SimpleNamespace(master="spark://head:7077", _conf=conf)


@of_six
@pytest.mark.parametrize("host", ["[::1]", "::1"])
@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
def test_tasks_reach_a_driver_by_ip_of_version_six(host: str, bound: dict[str, str]) -> None:
    server, name = listen(of_cluster(**{"spark.driver.host": host}, **bound))
    with server, socket.create_connection((name, server.getsockname()[1])) as task:
        assert task.getpeername()[0] == "::1"


@pytest.mark.parametrize("conf", [{}, {"spark.driver.bindAddress": "127.0.0.1"}, {"spark.driver.host": "localhost"}])
def test_tasks_reach_a_driver_by_ip_of_version_four(conf: dict[str, str]) -> None:
    server, name = listen(of_cluster(**conf))
    with server, socket.create_connection((name, server.getsockname()[1])) as task:
        assert task.getpeername()[0] == "127.0.0.1"


@of_six
def test_an_inbox_on_loopback_is_on_loopback_by_either_version() -> None:
    for host in ("127.0.0.1", "::1"):
        with listen_at(host, 0) as server:
            assert server.getsockname()[0] == host


def test_an_address_of_another_machine_is_refused_with_the_setting_to_change() -> None:
    with pytest.raises(
        OSError, match=r"can't listen for tasks on 192\.0\.2\.1 .* spark\.driver\.bindAddress .* wire='results'"
    ):
        listen(of_cluster(**{"spark.driver.bindAddress": "192.0.2.1"}))
