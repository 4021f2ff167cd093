"""tests/README.md names each folder of tests, and folders and files are of a size that one can look through."""

import collections
import re
import subprocess

import pytest

from tests.support.installed import ROOT

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

TESTS = ROOT / "tests"
MOST_FILES, MOST_LINES = 20, 600


def files():
    listed = subprocess.run(["git", "ls-files", "tests"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in map(ROOT.joinpath, listed.stdout.split()) if path.suffix == ".py" and path.exists()]


def test_each_folder_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \| \S.*\. \|$", (TESTS / "README.md").read_text(), re.MULTILINE)
    folders = {path.relative_to(TESTS).parts[0] for path in files() if path.parent != TESTS}
    assert rows == sorted(folders)


def test_all_tests_are_in_folders():
    assert {path.name for path in files() if path.parent == TESTS} == {"__init__.py", "conftest.py"}
    lost = [path for path in files() if not (path.parent / "__init__.py").exists()]
    assert lost == [], "pytest imports what is in no package by its bare name"


def test_sizes():
    folders = collections.Counter(path.parent for path in files() if path.name != "__init__.py")
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}
    lines = {path.relative_to(ROOT): path.read_text().count("\n") for path in files()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_step_names_a_file_of_tests():
    """Steps choose by folder and mark."""
    assert re.findall(r"tests/[\w/]+\.py", (ROOT / "tools" / "run_tests.py").read_text()) == ["tests/conftest.py"]
