"""Calls into the JVM: the job behind a subscription, and what Spark says of it."""
