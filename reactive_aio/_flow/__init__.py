"""The classes of the user: the flow, its ends, and the objects that are made of flows."""
