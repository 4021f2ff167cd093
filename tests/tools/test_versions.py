"""tools/versions.py: the matrix of environments, whose turn it is, what becomes of pytest's reports, and the page."""

import argparse
import pathlib

import pytest

from tests.conftest import LEFT_OUT
from tests.support.installed import ROOT
from tests.support.processes import run
from tests.tools.test_run_tests import load

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

versions = load("versions")
Environment, Row = versions.Environment, versions.Row


def options(**given):
    return argparse.Namespace(**{"tensorflow": None, "python": None, "only": None, **given})


def names(**given):
    return [environment.name for environment in versions.chosen(options(**given))]


def test_the_matrix_has_every_version_with_every_python():
    rows = versions.environments()
    assert len({row.name for row in rows}) == len(rows)
    for minor in versions.tensorflows():
        pythons = {row.python for row in rows if row.tensorflow == minor and not row.variant}
        assert pythons == {"3.10", "3.11", "3.12", *([] if minor == "2.19" else ["3.13"])}
    assert {"tensorflow", "tensorflow-cpu"} == {row.distribution for row in rows}
    variants = [row for row in rows if row.variant]
    assert all(row.tensorflow in versions.tensorflows() and row.beside for row in variants)
    # The build says the same of Python.
    text = (ROOT / "tools" / "setup.sh").read_text()
    lowest, highest = versions.PYTHON_MINORS[0], versions.PYTHON_MINORS[-1]
    assert f"(3, {lowest}) <= sys.version_info < (3, {highest + 1})" in text


def test_options_choose():
    everything = names()
    assert names(tensorflow="2.20") == [name for name in everything if name.startswith("2.20-")]
    assert names(tensorflow="2.20.0", python="3.12") == ["2.20-py3.12"]
    assert names(only="2.20-py3.11-numpy1.26-keras3.10") == ["2.20-py3.11-numpy1.26-keras3.10"]


@pytest.mark.parametrize(
    "given, words",
    [
        ({"tensorflow": "2.18"}, "TensorFlow '2.18' is not in the matrix, expected one of 2.19, 2.20"),
        ({"tensorflow": "2.19", "python": "3.13"}, "Python '3.13' is not in the matrix, expected one of 3.10, 3.11"),
        ({"only": "2.20"}, "environment '2.20' is not in the matrix, expected one of 2.19-py3.10"),
    ],
)
def test_unknown_names(given, words):
    with pytest.raises(versions.UnknownError) as error:
        versions.chosen(options(**given))
    assert str(error.value).startswith(words)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["test", "--nth", "-1"], "'-1' is no count, expected 0 or more"),
        (["test", "--nth", "monday"], "'monday' is no count"),
        (["test", "--tensorflow", "1.15"], "versions: TensorFlow '1.15' is not in the matrix"),
        (["teste"], "invalid choice: 'teste'"),
        (["suite", "--tensorflow", "2.20"], "5 environments are left, expected one: --only 2.20-py3.10"),
        ([], "required: command"),
    ],
)
def test_a_wrong_command_line(arguments, words):
    outcome = run(ROOT / "tools" / "versions.py", *arguments)
    assert outcome.returncode == 2 and words in outcome.stderr and "Traceback" not in outcome.stderr, outcome


def test_without_wheels_it_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(versions, "WHEELS", tmp_path)
    assert versions.main(["test", "--only", "2.20-py3.11"]) == 2
    said = capsys.readouterr().err
    assert said == "versions: nothing to test: dist/all has no wheel for Python 3.11. Fix: make wheel-all\n"


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """The commands that the tool runs, none of which is run; there are wheels, and nothing else."""
    seen = []

    def pretend(command, **options):
        seen.append([str(part) for part in command])
        if "venv" in command:
            pathlib.Path(command[-1]).mkdir(parents=True)
        return argparse.Namespace(returncode=3)

    (tmp_path / "tensorflow_xpu-1-cp311-cp311-any.whl").touch()
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    monkeypatch.setattr(versions, "WHEELS", tmp_path)
    monkeypatch.setattr(versions, "BUILD", tmp_path / "build")
    monkeypatch.setattr(versions, "pythons", lambda: {"3.11": "python3.11"})
    monkeypatch.setattr(versions, "tensorflows", lambda: {"2.20": "2.20.0", "2.21": "2.21.0"})
    monkeypatch.setattr(versions, "suite_requirements", lambda: ["torch==2.13.0"])
    monkeypatch.setattr(versions.subprocess, "run", pretend)
    return seen


def test_the_suite_runs_in_one_environment(calls, tmp_path):
    """Which is made at first; later it gets the wheel as it is then, and what it had before stays."""
    assert versions.main(["suite", "--only", "2.20-py3.11", "--", "-k", "softmax"]) == 3
    venv = tmp_path / "build" / "venvs" / "suite-2.20-py3.11"
    program = str(venv / "bin" / "python")
    made, packages, wheel, tests = calls
    assert made == ["python3.11", "-m", "venv", str(venv)]
    assert packages[0] == program and packages[-2:] == ["tensorflow-cpu==2.20.0", "torch==2.13.0"]
    assert wheel[0] == program and wheel[-1].endswith("tensorflow_xpu-1-cp311-cp311-any.whl")
    assert tests[:3] == [program, "-m", "pytest"] and tests[-4:] == ["-m", "not slow", "-k", "softmax"]
    calls.clear()
    versions.main(["suite", "--only", "2.20-py3.11"])
    assert [command[-1] for command in calls] == [wheel[-1], "not slow"]


def test_without_an_interpreter_the_suite_says_so(calls, capsys):
    assert versions.main(["suite", "--only", "2.20-py3.10"]) == 2
    assert capsys.readouterr().err == "versions: dist/all has no wheel for Python 3.10. Fix: make wheel-all\n"
    assert calls == []


def test_the_suite_has_what_the_tests_have():
    """All that is pinned, but for what follows TensorFlow's version."""
    names = [line.split("==")[0] for line in versions.suite_requirements()]
    assert {"torch", "jax", "pytest", "scikit-learn", "pyinstaller"} <= set(names)
    assert not {"tensorflow-cpu", "tensorboard", "keras", "numpy"} & set(names)


def test_every_environment_of_a_python_has_its_day():
    rows = versions.environments()
    own = Environment("2.21", "3.11")
    theirs = [row.name for row in rows if row.python == "3.11" and row != own]
    days = [versions.nth(rows, day, own) for day in range(1000, 1000 + len(theirs))]
    assert all(len(day) == 1 for day in days)
    assert sorted(day[0].name for day in days) == sorted(theirs) and len(theirs) > 4
    assert versions.nth(rows, 7, Environment("2.21", "3.9")) == []


def report(folder, *cases):
    path = folder / "report.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return list(versions.reports(path))


def case(name, inside=""):
    return f'<testcase classname="tests" name="{name}">{inside}</testcase>'


LATE = '<skipped type="pytest.skip" message="left out for time"/>'
GOOD = case("test_one_thing")
BAD = case("test_other", '<failure message="assert"/>')
BROKEN = case("test_broken", '<error message="fixture"/>')


def test_reports_become_outcomes(tmp_path):
    row = Row("2.20-py3.11")
    checks = report(tmp_path, GOOD, BAD, BROKEN, case("test_absent", '<skipped message="has no Keras 2"/>'))
    versions.tally(row, checks, report(tmp_path, case("test_op[Add]"), case("test_op[Sub]")))
    assert row.outcomes == {"one thing": "yes", "other": "no", "broken": "no", "ops": "yes, 2"}
    assert row.failed == ["other", "broken"] and row.left_out == 0
    row = Row("")
    versions.tally(row, report(tmp_path, GOOD), report(tmp_path, BAD, BAD, GOOD))
    assert row.failed == ["ops"] and row.outcomes["ops"] == "no: 2 of 3"


def test_what_time_left_out_is_no_yes(tmp_path):
    row = Row("")
    late = report(tmp_path, GOOD, case("test_op[Add]", LATE))
    versions.tally(row, late, late)
    assert row.outcomes == {"one thing": "yes"} and row.left_out == 2 and not row.failed


def test_pytest_that_dies_is_a_failure(tmp_path):
    row = Row("")
    nothing = list(versions.reports(tmp_path / "not_there.xml"))
    versions.tally(row, nothing, nothing)
    assert row.failed == ["checks", "ops"]


def test_the_reports_words_are_conftests():
    assert versions.LEFT_OUT == LEFT_OUT


def row_of(name, **outcomes):
    return Row(name, {"TensorFlow": "2.20.0", "Python": "3.11"}, outcomes)


def test_the_page_is_what_was_seen(tmp_path):
    """In the matrix' order; what was not run now stays, what is no longer in the matrix goes."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\n<!-- end -->\nafter\n")
    versions.write_page([row_of("2.22-py3.11", doctor="yes"), row_of("2.19-py3.10", doctor="no", ops="yes, 3")], page)
    text = page.read_text()
    assert text.startswith("before\n<!-- matrix -->\n| environment | TensorFlow | Python | doctor | ops |\n")
    assert text.splitlines()[3:6] == [
        "|---|---|---|---|---|",
        "| 2.19-py3.10 | 2.20.0 | 3.11 | no | yes, 3 |",
        "| 2.22-py3.11 | 2.20.0 | 3.11 | yes |  |",
    ]
    assert text.endswith("<!-- end -->\nafter\n")
    page.write_text(text.replace("2.22-py3.11", "2.7-py3.6"))
    versions.write_page([row_of("2.19-py3.10", doctor="yes"), row_of("2.20-py3.11", training="no: slow")], page)
    assert page.read_text().splitlines()[2:6] == [
        "| environment | TensorFlow | Python | doctor | training |",
        "|---|---|---|---|---|",
        "| 2.19-py3.10 | 2.20.0 | 3.11 | yes |  |",
        "| 2.20-py3.11 | 2.20.0 | 3.11 |  | no: slow |",
    ]


def test_rows_are_read_as_they_were_written():
    rows = [row_of("2.19-py3.10", doctor="yes"), row_of("2.20-py3.11", ops="no: 3 of 9")]
    assert list(versions.rows_of(versions.matrix(rows)).values()) == rows
    assert versions.rows_of("") == {}


def test_a_page_without_a_place_for_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words\n")
    with pytest.raises(versions.UnknownError, match="has no place for the matrix"):
        versions.write_page([row_of("2.19-py3.10")], page)
    assert page.read_text() == "words\n"


def test_the_documents_rows_are_of_the_matrix():
    """docs/versions.md has no row that nobody can make, and none that failed."""
    text = (ROOT / "docs" / "versions.md").read_text()
    rows = versions.rows_of(text.partition("<!-- matrix -->\n")[2].partition("<!-- end -->")[0])
    assert set(rows) <= {environment.name for environment in versions.environments()}
    assert [row.name for row in rows.values() if row.failed] == [] and rows
    for row in rows.values():
        minor = row.name.split("-")[0]
        assert row.cells["TensorFlow"] == versions.tensorflows()[minor], row
