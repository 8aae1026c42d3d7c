"""Where the tests verify: with limits that only what hangs comes to, however busy the machine is."""

from __future__ import annotations

from functools import partial
from typing import Final

from reactive_aio.tck import Environment

patient: Final = partial(Environment, deadline=120.0)
"""For those whose calls are measured by a clock that stands still."""
somewhere: Final = partial(patient, budget=5.0)
"""For those whose calls are measured by the clock of the machine, which may have put them aside."""
