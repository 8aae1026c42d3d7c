"""The loop's side of a job: chunks of many tasks brought to one subscriber, under one demand."""
