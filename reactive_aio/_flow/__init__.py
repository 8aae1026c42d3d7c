"""The classes that a user writes with: the flow, its ends, and the objects that are made of flows."""
