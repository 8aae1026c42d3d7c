"""Calls into the JVM: the job behind a subscription, and Spark's information on it."""
