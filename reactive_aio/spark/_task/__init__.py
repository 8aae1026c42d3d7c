"""The code that runs in Spark's Python workers, and what both sides agree on."""
