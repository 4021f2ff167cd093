"""tools/run_tests.py: what a failing, hanging or late step does to a run. tools/compile_commands.py: its entries.
tools/sanitized.py: what it makes of reports. tools/mutate_passes.py: its table."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import types

import pytest

from tests import conftest
from tests.support.installed import BACKENDS, ROOT
from tests.support.requirements import need

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def load(name):
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compile_commands, run_tests, sanitized = load("compile_commands"), load("run_tests"), load("sanitized")
load("pass_mutants")
mutate_passes = load("mutate_passes")  # which imports these two
Run, Step = run_tests.Run, run_tests.Step


def step(title, code, seconds=60, **options):
    return Step(title, (sys.executable, "-c", code), seconds, **options)


def pytest_in(folder):
    """The command that runs the tests of a folder in two processes, as the steps run them."""
    command = (sys.executable, "-m", "pytest", "-q", "-n", "2", "-ra", "-p", "no:cacheprovider")
    return (*command, f"--rootdir={folder}", str(folder))


def test_all_passes(capfd):
    run = Run()
    assert run.step(step("one", "print('out')", environment={"A": "1"}))
    assert run.close() == 0
    said = capfd.readouterr().out.splitlines()
    assert said[:2] == ["=== one", "out"] and said[2].startswith("=== one: 0 s") and said[3].startswith("=== passed in")


def test_a_failure_is_named_at_the_end(capfd):
    run = Run()
    assert not run.step(step("bad", "raise SystemExit(3)"))
    assert run.step(step("good", ""))
    assert not run.step(step("unbuilt", "", build=(sys.executable, "-c", "raise SystemExit(1)")))
    assert run.close() == 1
    said = capfd.readouterr().err.splitlines()
    assert "bad: exit status 3" in said[0] and "unbuilt: it does not build" in said[1]
    assert said[-1].startswith("=== 2 failed in") and said[-1].endswith(": bad; unbuilt")


def test_what_pytest_reported_of_a_failure_is_repeated_at_the_end(capfd, tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one():\n    assert 6 * 9 == 42\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary  # noqa: F401\n")
    run = Run()
    assert not run.step(Step("tests", pytest_in(tmp_path), 60, environment={"PYTHONPATH": str(ROOT)}))
    capfd.readouterr()
    assert run.close() == 1
    said = capfd.readouterr().err
    assert said.startswith("=== failed in tests\ntest_one.py::test_one\n") and "assert (6 * 9) == 42" in said


def test_where_a_process_of_tests_died_is_told_at_the_end(capfd, tmp_path):
    (tmp_path / "test_one.py").write_text("import os\n\ndef test_one():\n    os.abort()\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure  # noqa: F401\n")
    run = Run()
    assert not run.step(Step("tests", pytest_in(tmp_path), 60, environment={"PYTHONPATH": str(ROOT)}))
    capfd.readouterr()
    assert run.close() == 1
    assert "Fatal Python error: Aborted" in (said := capfd.readouterr().err) and "test_one.py" in said


def test_which_cpp_tests_failed_is_told_at_the_end(tmp_path):
    log, events = tmp_path / "test.log", tmp_path / "events"
    log.write_text("a" * run_tests.REPORT + "one element is wrong")
    failed = {"overallStatus": "FAILED", "failed": [{"uri": f"file://{log}"}]}
    told = [
        {"id": {"testSummary": {"label": "//a:passes"}}, "testSummary": {"overallStatus": "PASSED"}},
        {"id": {"testSummary": {"label": "//a:fails"}}, "testSummary": failed},
        {"id": {"testSummary": {"label": "//a:hangs"}}, "testSummary": {"overallStatus": "TIMEOUT"}},
        {"id": {"buildFinished": {}}, "finished": {"exitCode": {"name": "TESTS_FAILED", "code": 3}}},
    ]
    events.write_text("".join(json.dumps(event) + "\n" for event in told))
    fails, hangs = run_tests.failures_in(events)
    assert fails.startswith("//a:fails\nFAILED\naaa") and fails.endswith("one element is wrong")
    assert hangs == "//a:hangs\nTIMEOUT"
    command = run_tests.with_events(run_tests.bazel("test", "--config=tsan"), events)
    assert command[1:3] == ("test", f"--build_event_json_file={events}") and command[-1] == "//tensorflow_plugin/..."
    assert run_tests.failures_in(tmp_path / "none") == []


def test_what_does_not_fit_is_left_out_and_named(capfd):
    run = Run(seconds=200)
    assert run.step(step("long", "raise SystemExit(1)", seconds=101))
    endless = (sys.executable, "-c", "import time; time.sleep(1000)")
    assert run.step(step("late", "raise SystemExit(1)", seconds=99, build=endless))
    assert run.step(step("part", "raise SystemExit(1)", seconds=401, divisible=True))
    assert run.step(step("short", "", seconds=20))
    assert run.close() == 0
    said = capfd.readouterr().out.splitlines()
    assert said[-2] == "=== left out for time: long; late; part" and said[-1].startswith("=== what ran passed in")


def test_a_step_that_the_end_of_the_run_ends_is_left_out_too(capfd, monkeypatch):
    monkeypatch.setattr(run_tests, "GRACE", 1)
    run = Run(seconds=3)
    assert run.step(step("slow", "import time; time.sleep(1000)", seconds=1))
    assert run.close() == 0
    assert "=== left out for time: the rest of slow" in capfd.readouterr().out


def test_a_step_of_pytest_is_told_until_when_it_may_run(capfd, monkeypatch):
    monkeypatch.delenv("XPU_TESTS_UNTIL", raising=False)  # there is one where this test itself is of such a run
    code = "import os, time; print(float(os.environ['XPU_TESTS_UNTIL']) - time.time())"
    for seconds, expected in ((1000, 80), (60, 60)):
        assert Run(seconds).step(step("part", code, seconds=40, divisible=True))
        assert float(capfd.readouterr().out.splitlines()[1]) == pytest.approx(expected, abs=5)
    assert not Run().step(step("part", code, seconds=40, divisible=True)), "without a limit there is none to tell"


def test_a_step_that_hangs_fails_and_is_ended_with_all_its_processes(capfd, monkeypatch):
    monkeypatch.setattr(Step, "limit", 3)
    run = Run()
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '1000']).pid, flush=True); time.sleep(1000)"
    assert not run.step(step("hangs", code, seconds=1))
    assert run.close() == 1
    out, err = capfd.readouterr()
    assert "it did not end within 3 s" in err
    child = int(out.splitlines()[1])
    for _ in range(100):
        if not alive(child):
            return
        time.sleep(0.1)
    pytest.fail("its child is still there")


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_tests_that_no_longer_fit_are_left_out_and_counted(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n\n\ndef test_two():\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_runtest_setup, pytest_terminal_summary  # noqa: F401\n"
    )
    note = tmp_path / "note"
    for until, words in ((time.time() + 600, "2 passed"), (time.time(), "2 skipped")):
        environment = {"XPU_TESTS_UNTIL": str(until), "XPU_TESTS_LEFT_OUT": str(note), "PYTHONPATH": str(ROOT)}
        environment |= {"PATH": os.environ["PATH"]}
        done = subprocess.run(pytest_in(tmp_path), env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and words in done.stdout, done.stdout + done.stderr
        assert note.exists() == (words == "2 skipped")
    assert "left out for time" in done.stdout
    assert note.read_text() == "2 tests"


def test_every_python_test_is_in_a_step():
    """The first tests run first, and the step of all else leaves out no more than those. Folders say what it is."""
    assert [path for path in run_tests.FIRST if not (ROOT / path).is_dir()] == []
    rest = next(step for step in run_tests.TEST if "all else" in step.title)
    assert [a.removeprefix("--ignore=") for a in rest.command if a.startswith("--ignore=")] == list(run_tests.FIRST)


def test_where_a_backend_has_no_device_its_tests_fail(monkeypatch):
    monkeypatch.delenv("XPU_TESTS_UNTIL", raising=False)
    monkeypatch.setattr(conftest.pathlib.Path, "glob", lambda self, pattern: iter(()))
    for backend in ("XPU_HOST", "XPU_REFERENCE"):
        monkeypatch.setenv("TF_XPU_SUBDEVICE", backend)
        conftest.pytest_runtest_setup(None)
    monkeypatch.setenv("TF_XPU_SUBDEVICE", "XPU_OPENCL")
    with pytest.raises(pytest.fail.Exception, match="apt-get install pocl-opencl-icd"):
        conftest.pytest_runtest_setup(None)


def test_a_missing_package_is_a_failure():
    need("pytest", "numpy")
    with pytest.raises(pytest.fail.Exception, match=r"not installed: no_such_package. Fix: tools/setup.sh requirement"):
        need("numpy", "no_such_package")


@pytest.mark.parametrize("folder", conftest.SLOW_FOLDERS)
def test_folders_of_slow_tests_are_looked_into_where_slow_tests_run(folder):
    for expression, ignored in (("not host_only and not slow", True), ("slow", None), ("", None)):
        config = types.SimpleNamespace(option=types.SimpleNamespace(markexpr=expression))
        assert conftest.pytest_ignore_collect(ROOT / "tests" / folder, config) is ignored
        assert conftest.pytest_ignore_collect(ROOT / "tests" / "ops", config) is None
    for path in (ROOT / "tests" / folder).glob("test_*.py"):
        assert "pytestmark = [pytest.mark.slow" in path.read_text()


def test_every_backend_has_its_python_tests():
    steps = [step for step in (*run_tests.TEST, *run_tests.rest(0)) if "pytest" in step.command]
    assert {step.environment["TF_XPU_SUBDEVICE"] for step in steps} == set(BACKENDS)
    assert all(step.divisible for step in steps)


def test_each_step_has_its_day():
    days = [run_tests.rest(day) for day in range(len(run_tests.IN_TURN))]
    assert {steps[len(run_tests.ALWAYS)].title for steps in days} == {step.title for step in run_tests.IN_TURN}
    assert all(sorted(step.title for step in steps) == sorted(step.title for step in days[0]) for steps in days)


@pytest.mark.parametrize("arguments", [[], ["all"], ["test", "--seconds", "soon"]])
def test_a_wrong_command_line(arguments):
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), *arguments]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_compilations_are_those_of_the_files_that_are_edited():
    line = ["gcc", "-fno-canonical-system-headers", "-iquote", ".", "-isystem", "external/onednn/include"]
    line += ["-Iexternal/x", "-c", "tensorflow_plugin/a.cc", "-o", "bazel-out/a.o"]
    made = compile_commands.entry(line, "/base/external")
    assert made["directory"] == str(ROOT) and made["file"] == "tensorflow_plugin/a.cc"
    assert made["arguments"] == [
        *["gcc", "-iquote", ".", "-isystem", "/base/external/onednn/include", "-I/base/external/x"],
        *["-c", "tensorflow_plugin/a.cc", "-o", "bazel-out/a.o"],
    ]


def test_a_sanitizers_report_tells_our_leaks_from_others():
    def leak(*functions):
        stack = "".join(f"    #{i + 1} 0x7f in {function}\n" for i, function in enumerate(functions))
        return f"Direct leak of 8 byte(s) in 1 object(s) allocated from:\n    #0 0x7f in malloc\n{stack}\n"

    ours = leak("Launch tensorflow_plugin/ops/nn/pool.cc:205", "Compute (/x/libtensorflow_framework.so.2+0x1)")
    leaks = [
        leak("gc_alloc"),
        ours,
        leak("PlatformManager::PlatformWithName()", "Decide tensorflow_plugin/loader/a.cc:1"),
    ]
    header = "\n" + "=" * 65 + "\n==7==ERROR: LeakSanitizer: detected memory leaks\n\n"
    found = sanitized.findings(header + "".join(leaks) + "SUMMARY: AddressSanitizer: 24 byte(s) leaked\n")
    assert [f.strip() for f in found] == [ours.strip()]
    error = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n    #0 0x7f in somebody\n"
    assert len(sanitized.findings(error + header + ours)) == 2
    undefined = "tensorflow_plugin/ops/nn/pool.cc:7:3: runtime error: signed integer overflow\n"
    assert sanitized.findings(undefined) == [undefined]
    assert sanitized.findings(header + leaks[0]) == sanitized.findings("") == []


@pytest.mark.parametrize("mutant", mutate_passes.MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_replaces_is_there_once(mutant):
    """A change of such a line changes the row."""
    assert (ROOT / mutate_passes.PACKAGE / mutant.file).read_text().count(mutant.before) == 1
    assert mutant.before != mutant.after
