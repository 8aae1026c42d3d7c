"""Elements that travel as results of Spark jobs, where the workers can't connect to this process.

`task` runs in Spark's Python workers. `pulling` has the jobs, on a thread. `subscription` and `source` are the flow's
side.
"""
