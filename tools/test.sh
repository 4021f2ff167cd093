#!/usr/bin/env bash
# Every test there is (make test): the C++ tests, plain and under the sanitizers, then the Python tests against the
# installed wheel on each backend. Prints what it does and how long it took; stops at the first failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-2}"

step() {
  local title="$1" start=$SECONDS
  shift
  echo "=== $title"
  "$@" || { echo "=== FAILED: $title" >&2; exit 1; }
  echo "=== $title: $((SECONDS - start)) s"
}

bazel_test() { tools/bazel.sh test --build_tests_only "$@" //tensorflow_plugin/...; }

# Two processes: most of a test's time is TensorFlow's tracing, on one thread. Whoever has none left takes tests from the
# other: some take a minute.
python_tests() {
  local backend="$1"
  shift
  TF_XPU_SUBDEVICE="$backend" .venv/bin/python -m pytest -q -n 2 --dist worksteal --durations 15 "$@"
}

# Whoever touches device memory from the host dies at once, and every tensor is an allocation of its own.
isolated_tests() {
  TF_XPU_ISOLATE_MEMORY=1 TF_XPU_ALLOCATOR=pool python_tests XPU_HOST -m "not without_isolation" "$@"
}

tools/setup.sh requirements-test.txt
step "C++ tests" bazel_test
step "Python tests, host backend" python_tests XPU_HOST "$@"
step "Python tests, host backend, device memory isolated and from the plugin's pool" isolated_tests "$@"
step "Python tests, reference backend" python_tests XPU_REFERENCE -m "not host_only" "$@"
step "C++ tests under the address and undefined-behaviour sanitizers" bazel_test --config=asan
step "C++ tests under the thread sanitizer" bazel_test --config=tsan
echo "=== all tests passed in $SECONDS s"
