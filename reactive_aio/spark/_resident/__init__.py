"""Resident regions: tasks that stay, fed by an event loop and answering to it.

`scheduler` is the flow's side. `region` and `remote_task` are the loop's. `task` runs in Spark's Python workers.
"""
