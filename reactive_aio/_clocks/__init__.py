"""Clocks that jump: an event loop on virtual time, and the eyes by which it sees whether others are at work."""

from .bystanders import Bystanders as Bystanders
from .virtual import DeadlockError as DeadlockError
from .virtual import VirtualTimeLoop as VirtualTimeLoop
