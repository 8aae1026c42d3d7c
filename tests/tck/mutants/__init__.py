"""Broken publishers, subscribers and processors, to see that the verification suite notices."""

from . import processors, publishers, subscribers
from .mutant import MUTANTS as MUTANTS
from .mutant import Mutant as Mutant

FAMILIES = (processors, publishers, subscribers)
