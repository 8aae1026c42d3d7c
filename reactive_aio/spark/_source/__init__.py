"""What is read from Spark, and what Spark runs of the operators that follow."""
