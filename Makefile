# Aliases for python3 dev.py, which does the work: make test ARGS="-k arbiter"
.PHONY: run test lint bench

run test lint bench:
	python3 dev.py $@ $(ARGS)
