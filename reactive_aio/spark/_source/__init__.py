"""Reading from Spark, and the operators that follow and run there."""
