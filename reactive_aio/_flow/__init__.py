"""What one writes: the flow, its ends, and the objects that are made of flows."""
