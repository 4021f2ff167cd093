"""Packages that tests need beside TensorFlow. One that is missing is a failure: a skipped test would hide it."""

import importlib.util

import pytest


def need(*packages, file="requirements-test.txt"):
    """Fails, a test or the collection of a file of tests, where a package of a requirements file is not installed."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)}. Fix: tools/setup.sh {file}", pytrace=False)
