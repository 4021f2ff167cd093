"""tools/keras_versions.py runs tests with other versions of Keras, and tests.hooks.each_off without hooks."""

import subprocess
import sys
import time
import zipfile

import pytest

from tests.hooks import each_off
from tests.support.installed import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import keras_versions

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


@pytest.fixture
def with_arguments(monkeypatch):
    """Calls a program's main function with these arguments."""

    def call(main, *arguments):
        monkeypatch.setattr(sys, "argv", ["program", *arguments])
        return main()

    return call


def test_the_oldest_and_the_newest_keras_but_not_the_installed_one(monkeypatch):
    oldest, here = keras_versions.VERSIONS["keras"][0], keras_versions.installed()
    for newest, expected in (("99.0", [oldest, "99.0"]), (here, [oldest])):
        monkeypatch.setattr(keras_versions, "newest", lambda newest=newest: newest)
        assert keras_versions.chosen([]) == expected
    assert keras_versions.chosen(["3.12.4", here, "nightly", "3.12.4"]) == ["3.12.4", "nightly"]


def test_without_an_index_the_newest_keras_is_the_newest_known(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert keras_versions.newest() == keras_versions.VERSIONS["keras"][-1]


def test_an_environment_has_that_keras_and_all_else(monkeypatch, tmp_path):
    archive = tmp_path / "keras.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("keras/__init__.py", "__version__ = '99.0'\n")
        wheel.writestr("keras-99.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: keras\nVersion: 99.0\n")
    asked = []
    monkeypatch.setattr(keras_versions, "wheel", lambda requirement: asked.append(requirement) or archive)
    monkeypatch.setattr(keras_versions, "FOLDER", tmp_path)
    python = keras_versions.make("99.0")
    assert asked == ["keras==99.0"] and python.is_relative_to(tmp_path / "99.0")
    assert keras_versions.imported(python) == "99.0"
    code = "import importlib.metadata, importlib.util as util\n"
    code += "print(importlib.metadata.version('keras'), util.find_spec('tensorflow').origin)"
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split()
    assert said[0] == "99.0" and said[1].startswith(str(tmp_path))


def test_the_keras_that_fails_is_named_at_the_end(monkeypatch, capsys, with_arguments):
    monkeypatch.setattr(keras_versions, "passes", lambda version, arguments: version != "3.9.0" and arguments == ["-x"])
    assert with_arguments(keras_versions.main, "3.8.0", "3.9.0", "--", "-x") == 1
    out, err = capsys.readouterr()
    assert "Keras 3.8.0: passed" in out and "Keras 3.9.0: FAILED" in out
    assert err.splitlines()[-1] == "keras_versions: tests fail with Keras 3.9.0"
    assert with_arguments(keras_versions.main, "3.8.0", "--", "-x") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "keras_versions: tests pass with Keras 3.8.0"


def test_each_hook_has_its_line_and_those_that_fail_are_named_at_the_end(monkeypatch, capsys, with_arguments):
    monkeypatch.delenv("XPU_TESTS_UNTIL", raising=False)
    monkeypatch.setattr(each_off, "run", lambda name, suite, arguments: name != "jit" and suite)
    assert with_arguments(each_off.main, "--suite", "--names", "calls,jit,copies") == 1
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.endswith(("(1 of 3)", "(2 of 3)", "(3 of 3)"))] == said[0:6:2]
    assert (
        "without calls: passed" in said[1] and "without jit: FAILED" in said[3] and "without copies: passed" in said[5]
    )
    assert said[6:] == ["each_off: a test failed without jit"]


def test_hooks_that_time_does_not_suffice_for_are_named(monkeypatch, capsys, tmp_path, with_arguments):
    note = tmp_path / "note"
    monkeypatch.setenv("XPU_TESTS_LEFT_OUT", str(note))
    monkeypatch.setenv("XPU_TESTS_UNTIL", str(time.time() + 3600))

    def run(name, suite, arguments):
        if name == "jit":
            note.write_text("7 tests")
            monkeypatch.setenv("XPU_TESTS_UNTIL", str(time.time() - 1))
        return True

    monkeypatch.setattr(each_off, "run", run)
    assert with_arguments(each_off.main, "--names", "calls,jit,copies,tf32") == 0
    assert note.read_text() == "7 tests and those without copies, tf32"
    assert capsys.readouterr().out.splitlines()[-1] == "each_off: left out for time: those without copies, tf32"
