"""Lowering: what of a flow is run in the workers though it depends on the whole, because it can be done in parts.

A stage says so itself (`reactive_aio.segments.parts`), and the partitions are the parts: each task runs the one half of
the stage, and the loop the other, over what comes of the partitions in their order. What can't be done in parts is run
behind the boundary, as ever.
"""
