#!/usr/bin/env python3
"""Runs Keras's own tests on an XPU: those of the installed Keras, from its source distribution.

`tools/keras_tests.py` takes the tests of trainers, core layers and saving. Arguments name others
(keras/src/layers/rnn), and those after `--` are pytest's. Each test runs with the plugin and without it. The exit
status is 1 if one fails with the plugin alone; the last lines name it. pip brings the sources into build/keras. With
`--keras 3.12.4` both the tests and the Keras that they import are of that version.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile
import xml.etree.ElementTree
import zipfile

from hook_digests import wheel
from own_python import use_own_python

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "keras"
TESTS = ("keras/src/trainers", "keras/src/layers/core", "keras/src/saving")


def sources(version: str) -> pathlib.Path:
    """The unpacked source distribution of a version."""
    path = FOLDER / f"keras-{version}"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        sdist = ["--no-binary", ":all:", "--no-build-isolation", "--dest", str(FOLDER), f"keras=={version}"]
        subprocess.run([*pip, *sdist], check=True)
        with tarfile.open(FOLDER / f"keras-{version}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return path


def in_front(version: str) -> dict[str, str]:
    """The variables with which Python imports this version. The sources lack a file that makes a package of them."""
    if version == importlib.metadata.version("keras"):
        return {}
    path = FOLDER / f"wheel-{version}"
    if not path.exists():
        zipfile.ZipFile(wheel(f"keras=={version}")).extractall(path)
    return {"PYTHONPATH": str(path)}


def imported(variables: dict[str, str]) -> str:
    """The version of the Keras that Python imports with these variables."""
    code = "import keras; print(keras.__version__)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True, text=True)
    return found.stdout.splitlines()[-1]


def outcomes(folder: pathlib.Path, arguments: list[str], environment: dict[str, str]) -> dict[str, str]:
    """By test: passed, failed or skipped."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    # A file that needs a package which is not there is left out by itself.
    pytest = ["pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", f"--junit-xml={report}"]
    command = [sys.executable, "-m", *pytest, *arguments]
    variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2", **environment}
    subprocess.run(command, cwd=folder, env=variables, check=False)
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase") if report.exists() else ():
        bad = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        name = f"{case.attrib['classname']}.{case.attrib['name']}"
        found[name] = "failed" if bad else "skipped" if skipped else "passed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", default=TESTS, help="folders or files of Keras's sources")
    here = importlib.metadata.version("keras")
    parser.add_argument("--keras", metavar="VERSION", default=here, help=f"instead of {here}, which is installed")
    given, of_pytest = sys.argv[1:], []
    if "--" in given:
        given, of_pytest = given[: given.index("--")], given[given.index("--") + 1 :]
    options = parser.parse_args(given)
    folder = sources(options.keras)
    if not any(folder.glob("keras/src/**/*_test.py")):
        print(f"keras_tests: the source distribution of Keras {options.keras} has no tests; that of 3.12.4 has")
        return 2
    arguments = [*options.tests, *of_pytest]
    variables = in_front(options.keras)
    if imported(variables) != options.keras:
        print(f"keras_tests: Python imports Keras {imported(variables)}, not {options.keras}")
        return 2
    without = outcomes(folder, arguments, {**variables, "TF_XPU_DISABLE": "1"})
    found = outcomes(folder, arguments, variables)
    worse = sorted(name for name, outcome in without.items() if outcome == "passed" != found.get(name))
    counts = [sum(outcome == "passed" for outcome in each.values()) for each in (found, without)]
    print(f"keras_tests: {counts[0]} pass with the plugin, {counts[1]} without it")
    for name in worse:
        print(f"keras_tests: {name} {found.get(name, 'did not run')} with the plugin")
    return 1 if worse or not found else 0


if __name__ == "__main__":
    use_own_python()
    sys.exit(main())
