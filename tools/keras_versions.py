#!/usr/bin/env python3
"""The tests of hooks, models and Keras with other versions of Keras than the installed one.

`tools/keras_versions.py` takes the oldest version that hooks know, and the newest release of the package index. It
leaves out the one of .venv, with which the suite itself runs. Arguments name others (3.12.4, or nightly). Those after
`--` are pytest's, in place of the tests. Each version has an environment of its own in build/keras_versions, with
the packages of .venv but for Keras. The last lines say which versions failed; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

from hook_digests import VERSIONS, wheel
from own_python import use_own_python

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "keras_versions"
NIGHTLY = "nightly"
TESTS = (
    "tests/hooks",
    "tests/training/test_batches.py",
    "tests/training/test_keras.py",
    "tests/training/test_models.py",
    "tests/training/test_optimizers.py",
)
# Tests that Keras or TensorFlow fails by itself, on the CPU too.
LEFT_OUT = {
    # It reads losses with numpy.array, and TensorFlow gives NumPy 2 no scalar of bfloat16.
    "3.8.0": [
        f"tests/training/test_models.py::test_types[{model}-bfloat16-0.1]" for model in ("mlp", "cnn", "transformer")
    ]
}
NOT_SHARED = ("keras-", "keras_nightly-", "__pycache__")


def say(text: str, file: object = None) -> None:
    print(f"keras_versions: {text}", file=file or sys.stdout, flush=True)  # type: ignore[arg-type]


def installed() -> str:
    return importlib.metadata.version("keras")


def newest() -> str:
    """The newest release of the package index; of those that hooks know, where there is no index."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
    command = [*pip, "--no-deps", "--ignore-installed", "--report", "-", "keras"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        say(f"the package index does not answer: {VERSIONS['keras'][-1]} is taken for the newest release")
        return VERSIONS["keras"][-1]
    return str(json.loads(asked.stdout)["install"][0]["metadata"]["version"])


def chosen(names: list[str]) -> list[str]:
    """The versions to test, each once."""
    return [v for v in dict.fromkeys(names or [VERSIONS["keras"][0], newest()]) if v != installed()]


def make(version: str) -> pathlib.Path:
    """A fresh virtual environment with that Keras; its Python."""
    archive = wheel("keras-nightly" if version == NIGHTLY else f"keras=={version}")
    venv = FOLDER / version
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", venv], check=True)
    packages = pathlib.Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for entry in (pathlib.Path(sys.prefix) / packages).iterdir():
        if entry.name != "keras" and not entry.name.startswith(NOT_SHARED):
            (venv / packages / entry.name).symlink_to(entry)
    zipfile.ZipFile(archive).extractall(venv / packages)
    return venv / "bin" / "python"


def imported(python: pathlib.Path) -> str:
    """The version of the Keras that this Python imports."""
    code = "import keras; print(keras.__version__)"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    return found.stdout.splitlines()[-1]


def passes(version: str, arguments: list[str]) -> bool:
    python = make(version)
    there = imported(python)
    say(f"Keras {there}")
    if version not in (there, NIGHTLY):
        say(f"Python imports Keras {there}, not {version}", sys.stderr)
        return False
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "worksteal"]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", "KERAS_BACKEND": "tensorflow", **os.environ}
    command += [f"--deselect={test}" for test in LEFT_OUT.get(version, ())]
    tests = [*command, "-m", "not slow", *(arguments or TESTS)]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("versions", nargs="*", help="3.12.4, or nightly")
    given, of_pytest = sys.argv[1:], []
    if "--" in given:
        given, of_pytest = given[: given.index("--")], given[given.index("--") + 1 :]
    outcomes = {}
    for version in chosen(parser.parse_args(given).versions):
        began = time.monotonic()
        outcomes[version] = "passed" if passes(version, of_pytest) else "FAILED"
        say(f"Keras {version}: {outcomes[version]}, {time.monotonic() - began:.0f} s")
    failed = [version for version, outcome in outcomes.items() if outcome == "FAILED"]
    if failed:
        say(f"tests fail with Keras {', '.join(failed)}", sys.stderr)
        return 1
    say(f"tests pass with Keras {', '.join(outcomes)}" if outcomes else f"Keras {installed()} is all there is to test")
    return 0


if __name__ == "__main__":
    use_own_python()
    sys.exit(main())
