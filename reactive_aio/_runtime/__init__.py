"""The asyncio engine: drives the plan of a flow on event loops."""
