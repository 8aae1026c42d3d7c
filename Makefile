# Aliases for python3 dev.py, which does the work: make test ARGS="-k arbiter"
.PHONY: run test test-spark-cluster lint bench

run test test-spark-cluster lint bench:
	python3 dev.py $@ $(ARGS)
