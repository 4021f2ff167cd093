"""The output of tools/bazel_build.py while Bazel compiles."""

import io
import re
import stat
import sys
import time

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run

sys.path.insert(0, str(ROOT / "tools"))
import bazel_build

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

LINES = """INFO: Invocation ID: 1
Loading: 0 packages loaded
    currently loading: tensorflow_plugin
Analyzing: target //:wheel_tree (1 packages loaded, 0 targets configured)
INFO: Found 1 target...
[0 / 9] [Prepa] BazelWorkspaceStatusAction stable-status.txt
[10 / 1,400] 2 actions running
    Compiling a.cc; 1s local
    Compiling b.cc; 1s local
INFO: From Compiling a.cc:
a.cc:3:15: warning: 'mutex' is deprecated
    3 |   mutex m;
[700 / 1,400] Compiling c.cc
"""


def test_actions_are_counted():
    progress = bazel_build.Progress(0.0)
    assert progress.line(2.0) == "build: starting Bazel, 2 s"
    lines = LINES.splitlines()
    for line in lines[:3]:
        progress.read(line, 1.0)
    assert progress.line(3.0) == "build: currently loading: tensorflow_plugin, 3 s"
    for line in lines[3:9]:
        progress.read(line, 10.0)
    assert (progress.done, progress.total, progress.doing) == (10, 1400, "Compiling b.cc; 1s local")
    assert progress.seconds_left(12.0) is None  # too soon
    for line in lines[9:]:
        progress.read(line, 79.0)
    assert progress.doing == "Compiling c.cc"
    assert progress.said[-2:] == ["a.cc:3:15: warning: 'mutex' is deprecated", "    3 |   mutex m;"]
    # 700 actions in the 69 seconds since the first was counted, and 700 to go.
    assert progress.seconds_left(79.0) == pytest.approx(69.0)
    assert progress.line(79.0) == "build: 700 of 1400 actions done, 79 s, about 69 s left"
    assert progress.bar(79.0, 200) == (
        "[############............] 700 of 1400 actions done, 79 s, about 69 s left  Compiling c.cc"
    )
    assert len(progress.bar(79.0, 40)) <= 39


def test_the_time_left_follows_from_the_last_actions():
    """An action from a cache is done at once, and says nothing of the rest."""
    progress = bazel_build.Progress(0.0)
    for second in range(200):
        progress.read(f"[{1000 + second} / 1300] Compiling", float(second))
    assert progress.seconds_left(199.0) == pytest.approx(101, rel=0.02)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (99.2, "99 s"), (100, "1 min 40 s"), (123, "2 min"), (725, "12 min")]
)
def test_times_are_for_people(seconds, said):
    assert bazel_build.spoken(seconds) == said


def shown_until(words, stream, progress):
    """The text that a reporter has written when these words are in it."""
    with bazel_build.Reporter(progress, stream) as reporter:
        for line in LINES.splitlines():
            reporter.read(line)
        for _ in range(600):
            if words in stream.getvalue():
                return stream.getvalue()
            time.sleep(0.1)
    raise AssertionError(stream.getvalue())


def test_without_a_terminal_there_are_lines(monkeypatch):
    monkeypatch.setattr(bazel_build, "TICK", 0.01)
    monkeypatch.setattr(bazel_build, "EVERY", 1e9)
    stream = io.StringIO()
    with bazel_build.Reporter(bazel_build.Progress(time.monotonic()), stream):
        time.sleep(0.1)
    assert stream.getvalue() == ""
    monkeypatch.setattr(bazel_build, "EVERY", 0.01)
    text = shown_until("700 of", io.StringIO(), bazel_build.Progress(time.monotonic()))
    assert text.startswith("build: ") and "\r" not in text and "\n" in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_one_line_moves(monkeypatch):
    monkeypatch.setattr(bazel_build, "TICK", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    text = shown_until("700 of", stream, bazel_build.Progress(time.monotonic()))
    assert "\n" not in text and text.startswith("\r")
    assert stream.getvalue().endswith(bazel_build._ERASE)


@pytest.fixture
def fake(tmp_path):
    """A program that says what Bazel says and ends with the status of its second argument."""
    program = tmp_path / "bazel"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/arguments\ncat >&2 <<'EOF'\n{LINES}EOF\nexit $5\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_nothing_else_is_shown_unless_it_fails(fake, monkeypatch):
    monkeypatch.setattr(bazel_build, "LONG", 1e9)
    stream = io.StringIO()
    assert bazel_build.run([str(fake), "build", "0"], stream) == 0
    assert stream.getvalue() == ""
    arguments = (fake.parent / "arguments").read_text().split()
    assert arguments == ["build", *bazel_build.QUIET, "0"]
    assert bazel_build.run([str(fake), "build", "3"], stream) == 3
    assert "a.cc:3:15: warning" in stream.getvalue()
    assert re.search(r"\nbuild: failed after \d+ s\n$", stream.getvalue())
    assert "700 /" not in stream.getvalue()


def test_the_program_passes_bazels_status_on(fake):
    outcome = run("tools/bazel_build.py", "no-such-verb", cwd=ROOT, environment={"BAZEL": str(fake)})
    assert outcome.returncode == 0  # the fake one's, without an argument
    assert outcome.stdout == "" and "failed" not in outcome.stderr


def test_the_wheel_is_built_with_this_python(monkeypatch):
    monkeypatch.delenv("XPU_ALL_VERSIONS", raising=False)
    python = f"--repo_env=PYTHON_BIN_PATH={sys.executable}"
    assert bazel_build.wheel_command()[1:4] == ["build", "//:wheel_tree", python]
    monkeypatch.setenv("XPU_ALL_VERSIONS", "1")
    assert bazel_build.wheel_command()[2] == "//:wheel_tree_all"
