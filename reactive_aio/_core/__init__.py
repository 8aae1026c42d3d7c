"""What everything stands on: what a failure is, and what is said beside it."""
