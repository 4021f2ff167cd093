# make demo   trains a network on /xpu:0 and on the CPU, and compares
# make test   runs all tests
# make wheel  builds the wheel into dist/
# make stress random work on several devices and threads for ten minutes, checked against numpy
# make bench  measures against stock TensorFlow on the CPU (docs/benchmarks.md)
# Each does the set-up it needs (tools/setup.sh: what apt and pip must bring, into .venv) and reuses it afterwards.
PYTHON := .venv/bin/python

.PHONY: demo test wheel stress bench install setup clean

demo: install
	$(PYTHON) examples/digits_cnn.py

test: install
	tools/test.sh

stress: install
	$(PYTHON) -m tests.stress --seconds 600

bench: install
	@tools/setup.sh requirements-test.txt
	$(PYTHON) -m benchmarks

setup:
	@tools/setup.sh

wheel: setup
	@echo "build: the wheel (Bazel compiles what has changed)"
	@rm -rf dist
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w dist .
	@ls -lh dist/*.whl | awk '{print "build: " $$NF ", " $$5}'

install: wheel
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl

clean:
	rm -rf build dist python/*.egg-info demo.png demo.keras
	-tools/bazel.sh clean
