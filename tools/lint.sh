#!/usr/bin/env bash
# make lint: checks the style of all C++ and Python, the types of the package and the tools, and the documents' English;
# says all that is wrong before it fails. make format (--fix) mends what can be mended first.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=.venv/bin/python

status=0
check() {
  "$@" || { echo "lint: failed: $1 ${*:2:4}" >&2; status=1; }
}

mapfile -t sources < <(find tensorflow_plugin python tests \( -name '*.cc' -o -name '*.h' \) | sort)
if [[ "${1:-}" == --fix ]]; then
  check $PYTHON -m ruff check --quiet --fix .
  check $PYTHON -m ruff format --quiet .
  check .venv/bin/clang-format -i "${sources[@]}"
else
  check $PYTHON -m ruff check --quiet .
  check $PYTHON -m ruff format --quiet --check .
  check .venv/bin/clang-format --dry-run -Werror "${sources[@]}"
fi
check $PYTHON -m mypy --no-error-summary
check tools/lint_prose.py
[[ $status == 0 ]] && echo "lint: ${#sources[@]} C++ files and all of Python are as they should be"
exit $status
