"""A flow on Spark as a frame or an RDD: the results of ``Flow.to_frame`` and ``Flow.to_rdd``.

`parts` takes a flow apart into what Spark reads and what its tasks run, and refuses the rest by `refusals`. `task` runs
in Spark's Python workers. `framing` puts both into Spark's plan.
"""
