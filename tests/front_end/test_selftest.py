"""`python -m tensorflow_xpu selftest`: passes on what works, names what does not, and outlives crashes and hangs."""

import json
import os
import pty
import re
import select
import subprocess
import sys

import pytest

from tensorflow_xpu import _checks, _families, _op_checks, _worker
from tensorflow_xpu._terminal import Progress, paint
from tests.support.processes import environment_of, run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.usefixtures("no_options")]


def selftest(*arguments, **options):
    return run("-m", "tensorflow_xpu", "selftest", *arguments, **options)


def test_every_family_of_ops_has_a_check():
    assert sorted(_op_checks.OP_CHECKS) == sorted(_families.FAMILIES)
    for family, check in _op_checks.OP_CHECKS.items():
        assert set(check.ops.split(", ")) <= set(_families.FAMILIES[family].split()) | {"DeepCopy"}, family


@pytest.mark.slow
def test_all_is_well(xpu_device, tmp_path):
    """Where there is nothing but the installed packages."""
    outcome = selftest("--json", cwd=tmp_path)
    assert outcome.returncode == 0, outcome
    report = json.loads(outcome.stdout)
    assert report["ok"] is True
    assert [check["name"] for check in report["checks"]] == list(_checks.TASKS)
    assert all(check["result"] and not check["error"] for check in report["checks"])
    assert not list(tmp_path.iterdir())


def test_a_part_as_text(xpu_device):
    outcome = selftest("ops: *n*", "copies")
    assert outcome.returncode == 0, outcome
    lines = outcome.stdout.splitlines()
    expected = ["devices", *(f"ops: {f}" for f in _op_checks.OP_CHECKS if "n" in f), "copies"]
    assert [re.match(r" ok  (.*?)  ", line)[1] for line in lines[:-2]] == expected
    assert re.fullmatch(rf"All {len(expected)} checks passed in \d+ s\.", lines[-1])
    assert "\033[" not in outcome.stdout + outcome.stderr, "colours and bars are for terminals"


@pytest.mark.parametrize(
    "result", ["one", *(pytest.param(result, marks=pytest.mark.slow) for result in ("zeros", "scale", "last"))]
)
def test_wrong_results_are_found_in_every_family(result):
    """Each family computes by commands, or moves elements; those that only hand tensors on have none."""
    outcome = selftest("ops: ", "--json", environment={"TF_XPU_FAULT": f"command:result={result}"})
    assert outcome.returncode == 1, outcome
    failed = {check["name"].removeprefix("ops: ") for check in json.loads(outcome.stdout)["checks"] if check["error"]}
    assert set(_op_checks.OP_CHECKS) - failed <= {"datasets and iterators"}, outcome


@pytest.mark.slow
def test_failures_are_told_clearly():
    outcome = selftest("math", "errors", environment={"TF_XPU_FAULT": "command=Reduce:result=scale"})
    assert outcome.returncode == 1, outcome
    lines = outcome.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(" !!")]
    assert re.match(
        r" !!  ops: math +Mul, Tanh, AddV2, Sum op by op: element \[\d\] is \S+ instead of the CPU's \S+: ", line
    )
    assert "1 of 3 checks failed" in lines[-2] and "first 'ops: math': Mul, Tanh" in lines[-2]
    assert lines[-1] == "`python -m tensorflow_xpu selftest 'ops: math'` runs this one alone"


@pytest.mark.slow
def test_without_a_device_nothing_else_is_tried():
    outcome = selftest("--json", environment={"TF_XPU_DISABLE": "1"})
    assert outcome.returncode == 1, outcome
    first, *rest = json.loads(outcome.stdout)["checks"]
    assert "the plugin offers no devices: TF_XPU_DISABLE=1 is set" in first["error"]
    assert len(rest) == len(_checks.TASKS) - 1 and all(check["not_run"] for check in rest)


def test_wrong_usage_and_names():
    for arguments, words in [
        (["nonsense"], "no check is called 'nonsense': --list names them"),
        (["--limit", "0"], "expected a number of seconds above 0"),
    ]:
        outcome = selftest(*arguments)
        assert outcome.returncode == 2, outcome
        assert words in outcome.stderr
    outcome = selftest("--list")
    assert outcome.stdout.splitlines() == list(_checks.TASKS)


def test_without_tensorflow(bare_python, plugin_site):
    environment = {"PYTHONPATH": str(plugin_site.folder)}
    outcome = selftest(environment=environment, python=bare_python)
    assert outcome.returncode == 1, outcome
    assert "TensorFlow is not installed: pip install" in outcome.stderr


TASKS = """
import os, signal, time
from tensorflow_xpu._worker import TaskError
def fails(): raise TaskError("told")
def raises(): {}["what"]
def dies():
    print("noise"); print("F1234 12:00:00 x.cc:1] the reason", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
def hangs(): time.sleep(100)
def leaves(): os._exit(3)
TASKS = {f.__name__: f for f in (fails, raises, dies, hangs, leaves)}
TASKS["good"] = lambda: [1, {"a": None}]
"""


@pytest.fixture
def tasks(tmp_path):
    """Runs tasks of the above; yields their outcomes by name."""
    (tmp_path / "some_tasks.py").write_text(TASKS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    begun = []

    def run_tasks(*names):
        found = list(_worker.run("some_tasks", names, environment, 3.0, begun.append))
        assert [outcome.name for outcome in found] == list(names)
        return {outcome.name: outcome for outcome in found}, begun

    return run_tasks


def test_tasks_end_in_every_way(tasks):
    found, begun = tasks("good", "fails", "raises", "dies", "hangs", "leaves")
    assert begun == list(found)
    assert (found["good"].result, found["good"].error) == ([1, {"a": None}], "")
    assert (found["fails"].error, found["fails"].details, found["fails"].died) == ("told", "", False)
    assert found["raises"].error == "KeyError: 'what'"
    assert "in raises" in found["raises"].details
    assert (found["dies"].error, found["dies"].died) == ("was ended by SIGSEGV", True)
    assert found["dies"].details == "F1234 12:00:00 x.cc:1] the reason"
    assert found["hangs"].error == "did not end within 3 s"
    assert 3 <= found["hangs"].seconds < 6
    assert found["leaves"].error == "ended with exit code 3"


def test_a_process_that_dies_at_once_is_not_started_again(tasks):
    found, begun = tasks("dies", "good", "hangs")
    assert begun == ["dies"]
    assert [found[name].not_run for name in found] == [False, True, True]


def test_after_a_crash_the_next_ones_run(tasks):
    found, _ = tasks("good", "dies", "leaves", "fails")
    assert found["fails"].error == "told"


SHOWN = """
import sys, time
from tensorflow_xpu._terminal import GREEN, Progress, paint
with Progress(2) as progress:
    progress.step("first")
    progress.print("a line")
    progress.step("second")
    time.sleep(0.5)
print(paint("green", GREEN))
"""


def on_a_terminal(code, **variables):
    """The output on a terminal."""
    parent, child = pty.openpty()
    environment = {**environment_of({"TERM": "xterm", **variables})}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=child, stderr=child, env=environment)
    os.close(child)
    seen = b""
    while select.select([parent], [], [], 60)[0]:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # closed on the other side
            break
        if not chunk:
            break
        seen += chunk
    os.close(parent)
    assert process.wait() == 0, seen
    return seen.decode()


def test_progress_and_colours_on_a_terminal_alone():
    seen = on_a_terminal(SHOWN)
    assert "[........................] 0/2  0 s  first" in seen
    assert "[############............] 1/2  0 s  second" in seen
    assert re.search(r"\r\x1b\[Ka line\r\n", seen), "the bar is erased before a line"
    assert seen.endswith("\r\x1b[K\x1b[32mgreen\x1b[0m\r\n"), "and at the end"
    assert "\x1b[32m" not in on_a_terminal(SHOWN, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(SHOWN, TERM="dumb")
    outcome = run("-c", SHOWN)
    assert (outcome.stdout, outcome.stderr) == ("a line\ngreen\n", "")


def test_nothing_is_shown_here(capsys):
    with Progress(1) as progress:
        progress.step("one")
    assert paint("x", "31") == "x"
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [("doctor", "examining the installation"), ("devices", "importing TensorFlow"), ("ops Lu", "importing TensorFlow")],
)
def test_what_takes_long_says_so_on_a_terminal(command, said):
    code = f"import sys; from tensorflow_xpu.__main__ import main; sys.argv[1:] = {command.split()}; main()"
    seen = on_a_terminal(code)
    assert f"{said} 1 s" in seen
    last = seen.rpartition("\x1b[K")[2]
    assert said not in last and len(last.splitlines()) > 2, "it is gone before the answer"
