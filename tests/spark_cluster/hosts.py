"""Several machines on one: hosts that are network namespaces of Linux, with names and addresses of their own, on one switch.

    python -m tests.spark_cluster.hosts python -m pytest tests/spark_cluster

runs a command on the host `driver`, while a standalone cluster of Spark runs on `master`, `worker-1` and `worker-2`. The
hosts share the processors, the disks and the process table of the machine. They share no network. A packet of one host
arrives at another one if both are plugged in and no firewall forbids it. The hosts don't reach or change the machine's
own network. It takes root and the command `ip`; firewalls take `nft`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from attrs import field, frozen

NAMES: Final = ("driver", "master", "worker-1", "worker-2")
WORKERS: Final = NAMES[2:]
ALIAS: Final = "driver-too"
"""A second name of the driver, of an address of its own."""
FOUND: Final = "SPARK_HOSTS"
"""The variable by which a command on the driver finds the hosts."""
PREFIX: Final = "reactive-aio"
CONFIGURED: Final = Path("/etc/netns")
"""Where `ip netns exec` finds what takes the place of files in /etc."""
DRIVERS: Final = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
"""The settings of the driver's Python; the workers have the Python that Spark brings."""
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
TIMEOUT: Final = 12
"""Seconds after which the master takes a silent worker for lost; they are 60 by default."""
PATIENCE: Final = 60.0


def lacking() -> str:
    """Say what this machine lacks for hosts; nothing if they can be had."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "hosts of their own are network namespaces of Linux, which take root"
    for command in ("ip", "unshare", "hostname"):
        if shutil.which(command) is None:
            return f"hosts of their own take the command {command}, of the packages iproute2, util-linux and hostname"
    probe = f"{PREFIX}-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces can't be made here: {made.stderr.strip()}"
    _ip("netns", "delete", probe)
    return ""


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@frozen
class Hosts:
    """The hosts of one run, by the prefix of their namespaces."""

    prefix: str

    @staticmethod
    def found() -> Hosts:
        """Return the hosts of the run in which this process takes part."""
        return Hosts(os.environ[FOUND])

    def namespace(self, host: str) -> str:
        return f"{self.prefix}-{host}"

    @staticmethod
    def address(host: str) -> str:
        return f"10.77.0.{[*NAMES, ALIAS].index(host) + 1}"

    def on(self, host: str, *command: str) -> list[str]:
        """The command that runs a command on a host."""
        inside = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host, *command]
        return ["ip", "netns", "exec", self.namespace(host), *inside]

    def pids(self, host: str) -> list[int]:
        return [int(each) for each in _ip("netns", "pids", self.namespace(host)).split()]

    # -- what a test does to them

    def unplug(self, host: str) -> None:
        """Have a machine vanish: nothing comes from it any more, no farewell either, and nothing reaches it."""
        _ip("-n", self.namespace("switch"), "link", "set", "dev", host, "down")

    def plug_in(self, host: str) -> None:
        _ip("-n", self.namespace("switch"), "link", "set", "dev", host, "up")

    @contextmanager
    def firewall(self, host: str, *rules: str) -> Generator[None]:
        """Let through to a host only what the rules of nftables accept; what it has begun itself goes on."""
        accepted = ["ct state established,related accept", "iif lo accept", *rules]
        table = f"table inet filter {{ chain input {{ type filter hook input priority 0; policy drop; {'; '.join(accepted)}; }}; }}"
        _run("ip", "netns", "exec", self.namespace(host), "nft", table)
        try:
            yield
        finally:
            _run("ip", "netns", "exec", self.namespace(host), "nft", "delete table inet filter")

    # -- how they come and go

    def set_up(self) -> None:
        """Make the hosts and plug them in; the switch is a bridge in a namespace of its own."""
        switch = self.namespace("switch")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        names = "".join(f"{self.address(each)} {each}\n" for each in (*NAMES, ALIAS))
        for host in NAMES:
            own = self.namespace(host)
            _ip("netns", "add", own)
            _ip("-n", own, "link", "set", "lo", "up")
            _ip("-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", host, "netns", switch)
            _ip("-n", own, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            _ip("-n", own, "link", "set", "eth0", "up")
            _ip("-n", switch, "link", "set", "dev", host, "master", "switch", "up")
            (CONFIGURED / own).mkdir(parents=True)
            (CONFIGURED / own / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        _ip("-n", self.namespace("driver"), "address", "add", f"{self.address(ALIAS)}/24", "dev", "eth0")

    def take_down(self) -> None:
        """End what runs on the hosts, and remove them, as far as there are any."""
        there = [line.split()[0] for line in _ip("netns", "list").splitlines()]
        for host in (*NAMES, "switch"):
            if self.namespace(host) in there:
                for pid in self.pids(host):
                    with suppress(ProcessLookupError):  # it has ended by itself
                        os.kill(pid, signal.SIGKILL)
                _ip("netns", "delete", self.namespace(host))
            shutil.rmtree(CONFIGURED / self.namespace(host), ignore_errors=True)
        if CONFIGURED.exists() and not any(CONFIGURED.iterdir()):
            CONFIGURED.rmdir()


def remove_orphans() -> None:
    """Take down the hosts of runs that were killed before they could; the process that runs them is in their names."""
    for line in _ip("netns", "list").splitlines():
        found = re.match(rf"{PREFIX}-(\d+)-switch\b", line)
        if found and not Path("/proc", found[1]).exists():
            Hosts(f"{PREFIX}-{found[1]}").take_down()


@frozen
class Standalone:
    """A standalone cluster of Spark on the hosts: a master and two workers, each of two cores."""

    hosts: Hosts
    folder: Path = field(converter=Path)
    """For all that it writes."""

    URL = "spark://master:7077"

    def start(self) -> None:
        """Start the processes, and wait until the master knows the workers."""
        self._start("master", "org.apache.spark.deploy.master.Master", "--port", "7077", "--webui-port", "8080")
        self._await("master", "I have been elected leader")
        for host in WORKERS:
            self._start(host, "org.apache.spark.deploy.worker.Worker", "--cores", "2", "--memory", "1g", self.URL)
        for host in WORKERS:
            self._await(host, "Successfully registered with master")

    def _start(self, host: str, name: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        (self.folder / host / "local").mkdir(parents=True)
        own = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": self.hosts.address(host),
            "SPARK_WORKER_DIR": str(self.folder / host),
            "SPARK_LOCAL_DIRS": str(self.folder / host / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK} -Dspark.worker.timeout={TIMEOUT} -Dspark.deploy.maxExecutorRetries=-1",
        }
        command = self.hosts.on(host, str(home / "bin" / "spark-class"), name, "--host", host, *arguments)
        with self._log(host).open("w") as log:
            subprocess.Popen(
                command,
                env={**{key: value for key, value in os.environ.items() if key not in DRIVERS}, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _log(self, host: str) -> Path:
        return self.folder / f"{host}.log"

    def _await(self, host: str, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while words not in (said := self._log(host).read_text()):
            if time.monotonic() > until:
                raise TimeoutError(f"{host} has not said {words!r} within {PATIENCE:.0f} seconds, but:\n{said}")
            time.sleep(0.1)


def run(command: Sequence[str]) -> int:
    """Run a command on the driver, with a cluster beside it, and leave nothing behind."""
    if reason := lacking():
        raise SystemExit(reason)
    remove_orphans()
    hosts = Hosts(f"{PREFIX}-{os.getpid()}")
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="reactive_aio-hosts-", ignore_cleanup_errors=True)
        )
        stack.callback(hosts.take_down)
        hosts.set_up()
        cluster = Standalone(hosts, folder)
        cluster.start()
        own = {"SPARK_CLUSTER": cluster.URL, "SPARK_LOCAL_IP": hosts.address("driver"), FOUND: hosts.prefix}
        return subprocess.run(hosts.on("driver", *command), env={**os.environ, **own}, check=False).returncode


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main(command: Sequence[str]) -> int:
    """Run a command on the driver until it ends or a signal comes, and give its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run(command)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
