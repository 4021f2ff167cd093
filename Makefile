# make demo   trains a network on /xpu:0 and on the CPU, and compares
# make test   the tests that find most: C++, and Python on the default backend; a quarter of an hour at most
# make test-all  the rest: device memory isolated, the other backend, the sanitizers, what is slow, other versions of
#             Keras, and all Python tests without each hook, which takes hours; TEST_SECONDS=2400 gives it that time, and
#             it says what it left out
# make wheel  builds the wheel into dist/, for the TensorFlow in .venv
# make wheel-all  builds into dist/all wheels for all versions of TensorFlow and Python (docs/versions.md);
#             make test-versions tests them
# make stress random work on several devices and threads for ten minutes, checked against numpy
# make bench  measures ops and models against stock TensorFlow on the CPU, and models against XLA, JAX and PyTorch, too
#             (docs/benchmarks.md): two hours; make contest only the latter, BENCH=--quick in five minutes
# make lint   checks style (clang-format, ruff) and types (mypy); make format mends the style
# make compile-commands  writes compile_commands.json, for editors
# Each does the set-up it needs (tools/setup.sh: what apt and pip must bring, into .venv) and reuses it afterwards.
PYTHON := .venv/bin/python

.PHONY: demo test test-all test-versions lint format compile-commands wheel wheel-all stress bench contest install setup clean

demo: install
	$(PYTHON) examples/digits_cnn.py

test: install
	@tools/setup.sh requirements-test.txt
	@tools/run_tests.py test

test-all: install
	@tools/setup.sh requirements-test.txt requirements-models.txt requirements-search.txt requirements-engines.txt
	@tools/run_tests.py rest $(if $(TEST_SECONDS),--seconds $(TEST_SECONDS))

lint: setup
	@tools/lint.sh

format: setup
	@tools/lint.sh --fix

compile-commands: wheel
	@tools/compile_commands.py

stress: install
	$(PYTHON) -m tests.stress --seconds 600

bench: install
	@tools/setup.sh requirements-test.txt requirements-models.txt requirements-engines.txt
	$(PYTHON) -m benchmarks
	$(PYTHON) -m benchmarks.contest --write

contest: install
	@tools/setup.sh requirements-test.txt requirements-models.txt requirements-engines.txt
	$(PYTHON) -m benchmarks.contest $(or $(BENCH),--write)

setup:
	@tools/setup.sh

wheel: setup
	@echo "build: the wheel (Bazel compiles what has changed)"
	@$(PYTHON) tools/bazel_build.py --wheel
	@rm -f dist/*.whl
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w dist .
	@ls -lh dist/*.whl | awk '{print "build: " $$NF ", " $$5}'

wheel-all: setup
	@$(PYTHON) tools/versions.py wheel

test-versions: wheel-all
	@$(PYTHON) tools/versions.py test --write

install: wheel
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl

clean:
	rm -rf build dist python/*.egg-info demo.png demo.keras
	-tools/bazel.sh clean
