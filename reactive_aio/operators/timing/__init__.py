"""Operators that look at the clock of their event loop."""
