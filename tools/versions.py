#!/usr/bin/env python3
"""One wheel for several versions of TensorFlow: `make wheel-all` and `make test-versions`.

The commands:

- `fetch` puts the headers and libraries of each version in third_party/tensorflows.bzl into build/versions, but for the
  one that .venv has.
- `wheel` fetches them, too, and builds into dist/all a wheel with a core for each of them. It does so for every Python
  3.10 to 3.13 of this machine, or for those that the variable PYTHONS names ("python3.11 /opt/py/bin/python"). With
  --own it does so for the Python of .venv alone.
- `list` prints the environments of the matrix, and which of them this machine can make.
- `test` makes them, and runs in each tests/versions/checks.py, and the sweep with one kernel of each op. It says what
  failed. It takes all that can be made, those that the options leave, or with --nth the one whose turn it is. With
  --write its results go into docs/versions.md, beside those of earlier runs.
- `suite` runs the Python tests of `make test`, or those that pytest's arguments at its end name. It does so in the one
  environment that the options leave, which it makes at first and keeps.

The exit status is 1 if anything failed, and 2 if there is nothing to test.

The Python is that of .venv, where there is one, whichever runs this file.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile
from collections.abc import Iterable, Iterator, Sequence

from own_python import use_own_python

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "versions"
WHEELS = ROOT / "dist" / "all"  # apart from the wheel of `make wheel`, which `make install` takes
PAGE = ROOT / "docs" / "versions.md"
PYTHON_MINORS = (10, 11, 12, 13)
# The parts that third_party/repositories.bzl takes of a TensorFlow.
NEEDED = re.compile(
    r"tensorflow/(include/.*|libtensorflow_(framework|cc)\.so\.2|python/lib_pywrap_tensorflow_common\.so)"
)
# The packages that the checks use. pip chooses the SciPy that goes with Python and NumPy, and the needs of TensorFlow
# itself.
BESIDE = ("pytest==9.2.0", "pytest-xdist==3.8.0", "scipy")
# The whole suite uses these files besides, but for packages that go with TensorFlow's version and are pip's to choose.
SUITE = ("requirements-dev.txt", "requirements-test.txt")
WITH_TENSORFLOW = ("tensorflow-cpu", "tensorboard", "keras", "numpy")
# The words of tests/conftest.py where a test did not begin before XPU_TESTS_UNTIL.
LEFT_OUT = "left out for time"


@dataclasses.dataclass(frozen=True)
class Environment:
    """A row of the matrix: what a fresh virtual environment has."""

    tensorflow: str  # the minor version
    python: str
    variant: str = ""  # ends its name
    distribution: str = "tensorflow-cpu"
    beside: Sequence[str] = ()  # instead of what pip would choose, or besides

    @property
    def name(self) -> str:
        return "-".join([self.tensorflow, f"py{self.python}", *([self.variant] if self.variant else [])])


# Where a TensorFlow has no wheels for a Python.
LACKING = {("2.19", "3.13")}
VARIANTS = (
    # Keras 2 depends on the distribution `tensorflow`, and would unpack it over `tensorflow-cpu`.
    Environment("2.21", "3.11", "tensorflow-tf_keras", "tensorflow", ("tf_keras==2.21.0",)),
    Environment("2.20", "3.11", "numpy1.26-keras3.10", beside=("numpy==1.26.4", "keras==3.10.0")),
)


def environments() -> list[Environment]:
    """The matrix: each TensorFlow with each Python that it has wheels for, and the variants."""
    pairs = [(minor, f"3.{python}") for minor in tensorflows() for python in PYTHON_MINORS]
    return [*(Environment(*pair) for pair in pairs if pair not in LACKING), *VARIANTS]


def say(text: str) -> None:
    print(f"versions: {text}", flush=True)


def tensorflows() -> dict[str, str]:
    """The table in third_party/tensorflows.bzl: a minor version to the release that its core is built for."""
    module = ast.parse((ROOT / "third_party" / "tensorflows.bzl").read_text())
    table: dict[str, str] = next(ast.literal_eval(node.value) for node in module.body if isinstance(node, ast.Assign))
    return table


def output(*command: str | pathlib.Path) -> str:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout.strip()


def minor_of(python: str | pathlib.Path) -> str:
    """ "3.11" """
    return output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


def installed_tensorflow() -> str:
    """The version in .venv, "" if there is none."""
    code = "import importlib.metadata as m; print([d.version for d in m.distributions() "
    code += "if d.metadata['Name'].replace('_', '-') in ('tensorflow', 'tensorflow-cpu')])"
    return (ast.literal_eval(output(sys.executable, "-c", code)) or [""])[0]


def pythons() -> dict[str, str]:
    """The Pythons to build for: "3.11" to a program."""
    chosen = os.environ.get("PYTHONS", "").split()
    if chosen:
        return {minor_of(python): python for python in chosen}
    found = {minor_of(sys.executable): sys.executable}
    for minor in PYTHON_MINORS:
        named = shutil.which(f"python3.{minor}")
        others = sorted(pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"), reverse=True)
        for candidate in [*([named] if named else []), *map(str, others)]:
            run = subprocess.run(
                [candidate, "-c", "import venv"], capture_output=True, check=False
            )  # a shim may lead nowhere
            if run.returncode == 0:
                found.setdefault(f"3.{minor}", candidate)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def fetch() -> None:
    """Puts what is missing into build/versions."""
    installed = installed_tensorflow()
    for minor, version in tensorflows().items():
        target = BUILD / version
        if minor == ".".join(installed.split(".")[:2]) or target.exists():
            continue
        say(f"fetching TensorFlow {version}")
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--dest", folder, f"tensorflow-cpu=={version}"], check=True)
            with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as archive:
                names = [name for name in archive.namelist() if NEEDED.fullmatch(name)]
                archive.extractall(pathlib.Path(folder) / "unpacked", names)
            (pathlib.Path(folder) / "unpacked").rename(target)  # whole or not at all


def wheel_for(minor: str) -> pathlib.Path | None:
    """The wheel of this Python in dist/all."""
    return next(WHEELS.glob(f"*-cp{minor.replace('.', '')}-*.whl"), None)


def build_wheels(chosen: dict[str, str]) -> None:
    """Builds into dist/all, a wheel for each Python."""
    fetch()
    # The other Pythons need nothing installed: what builds a wheel is written in Python, and .venv has it.
    environment = {**os.environ, "XPU_ALL_VERSIONS": "1"}
    packages = output(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    for minor, python in chosen.items():
        say(f"building for Python {minor}")
        if before := wheel_for(minor):
            before.unlink()
        paths = {} if python == sys.executable else {"PYTHONPATH": packages}
        # First, so that its progress is seen: pip keeps quiet.
        subprocess.run([python, "tools/bazel_build.py", "--wheel"], cwd=ROOT, env=environment | paths, check=True)
        command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
        subprocess.run([*command, "--no-deps", "-w", str(WHEELS), str(ROOT)], env=environment | paths, check=True)
        if made := wheel_for(minor):
            say(f"{made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB")


@dataclasses.dataclass
class Row:
    """The findings in one environment."""

    name: str
    cells: dict[str, str] = dataclasses.field(default_factory=dict)  # versions, and when
    outcomes: dict[str, str] = dataclasses.field(default_factory=dict)  # of a check: "yes", or what failed
    left_out: int = 0  # checks that did not begin in time

    @property
    def failed(self) -> list[str]:
        return [check for check, outcome in self.outcomes.items() if not outcome.startswith("yes")]


def reports(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """The name of each test that pytest ran, and what became of it: yes, no, "" (does not apply) or left out."""
    if not path.exists():
        return
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        bad = case.find("failure") is not None or case.find("error") is not None
        outcome = "no" if bad else "yes" if skipped is None else ""
        if skipped is not None and LEFT_OUT in skipped.attrib.get("message", ""):
            outcome = LEFT_OUT
        yield case.attrib["name"], outcome


def tally(row: Row, checks: Sequence[tuple[str, str]], sweep: Sequence[tuple[str, str]]) -> None:
    """Puts into the row what pytest reported of the checks and of the sweep."""
    row.left_out += sum(outcome == LEFT_OUT for _, outcome in [*checks, *sweep])
    for name, outcome in checks:
        if outcome in ("yes", "no"):
            row.outcomes[name.removeprefix("test_").replace("_", " ")] = outcome
    if not checks:
        row.outcomes["checks"] = "no"  # pytest itself failed
    seen = [outcome for _, outcome in sweep if outcome in ("yes", "no")]
    failed = seen.count("no")
    if failed or not sweep:
        row.outcomes["ops"] = f"no: {failed} of {len(seen)}"
    elif LEFT_OUT not in [outcome for _, outcome in sweep]:
        row.outcomes["ops"] = f"yes, {len(seen)}"


def pip_install(program: str, *arguments: str) -> None:
    subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def install_wheel(program: str, environment: Environment) -> None:
    pip_install(program, "--no-index", "--no-deps", "--force-reinstall", str(wheel_for(environment.python)))


def make(environment: Environment, python: str, venv: pathlib.Path, others: Sequence[str] = BESIDE) -> str:
    """A fresh virtual environment with the wheel and other packages; its Python."""
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python, "-m", "venv", venv], check=True)
    program = str(venv / "bin" / "python")
    tensorflow = f"{environment.distribution}=={tensorflows()[environment.tensorflow]}"
    pip_install(program, tensorflow, *others, *environment.beside)
    install_wheel(program, environment)
    return program


def suite_requirements() -> list[str]:
    """The needs of the whole suite for pip, as the files have them: "torch==2.13.0"."""
    lines = [line.split("#")[0].strip() for name in SUITE for line in (ROOT / name).read_text().splitlines()]
    return [line for line in lines if line and line.split("==")[0] not in WITH_TENSORFLOW]


def suite(options: argparse.Namespace) -> int:
    """Runs the whole suite, or a part of it, in one environment, with the wheel as it is now."""
    rows = chosen(options)
    if len(rows) != 1:
        raise UnknownError(f"{len(rows)} environments are left, expected one: --only {rows[0].name}")
    (environment,) = rows
    python = pythons().get(environment.python)
    if not python or not wheel_for(environment.python):
        raise UnknownError(f"dist/all has no wheel for Python {environment.python}. Fix: make wheel-all")
    venv = BUILD / "venvs" / f"suite-{environment.name}"
    program = str(venv / "bin" / "python")
    if (venv / "complete").exists():
        install_wheel(program, environment)
    else:
        say(f"making {venv.relative_to(ROOT)}")
        try:
            program = make(environment, python, venv, suite_requirements())
        except subprocess.CalledProcessError as error:
            raise UnknownError(f"the suite's packages do not go with {environment.name}; pip says why") from error
        (venv / "complete").touch()
    command = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *options.arguments]
    return subprocess.run(command, cwd=ROOT, env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}, check=False).returncode


def run_pytest(program: str, xml_file: pathlib.Path, *arguments: str) -> list[tuple[str, str]]:
    """The results of these tests, in that Python."""
    command = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={xml_file}", *arguments]
    environment = {"XPU_SWEEP_KERNELS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    environment.pop("XPU_TESTS_LEFT_OUT", "")  # it is one for all, see below
    xml_file.unlink(missing_ok=True)
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if folder := os.environ.get("XPU_TESTS_REPORTS"):  # the next ones have a report of that name, too
        told = pathlib.Path(folder) / "failed"
        if told.exists():
            told.rename(told.with_name(f"failed-{len(list(told.parent.iterdir()))}"))
    return list(reports(xml_file))


def examine(environment: Environment, python: str, processes: int) -> Row:
    """Makes the virtual environment and runs the checks in it."""
    row = Row(environment.name)
    venv = BUILD / "venvs" / environment.name
    try:
        program = make(environment, python, venv)
    except subprocess.CalledProcessError as error:
        say(f"{environment.name}: {' '.join(map(str, error.cmd))} failed")
        row.outcomes["installs"] = "no"
        return row
    listed = json.loads(output(program, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    installed = {package["name"].replace("_", "-"): package["version"] for package in listed}
    row.cells = {
        "TensorFlow": installed[environment.distribution],
        "Python": environment.python,
        "NumPy": installed["numpy"],
        "Keras": installed.get("keras") or installed["keras-nightly"],  # a candidate asks for the latter
        "on": datetime.date.today().isoformat(),
    }
    xml_file = venv / "report.xml"
    checks = run_pytest(program, xml_file, "tests/versions/checks.py")
    several = ("-n", str(processes)) if processes > 1 else ()
    tally(row, checks, run_pytest(program, xml_file, *several, "tests/sweep/test_sweep.py", "-k", "test_op"))
    if not row.failed:
        shutil.rmtree(venv)
    return row


class UnknownError(Exception):
    """A name that is not in the matrix."""


def known(what: str, value: str, values: Iterable[str]) -> str:
    values = list(dict.fromkeys(values))
    if value not in values:
        raise UnknownError(f"{what} {value!r} is not in the matrix, expected one of {', '.join(values)}")
    return value


def chosen(options: argparse.Namespace) -> list[Environment]:
    """The environments that the options leave, whether or not this machine can make them."""
    rows, table = environments(), tensorflows()
    if options.tensorflow:
        minors = {version: minor for minor, version in table.items()}
        minor = minors.get(options.tensorflow, options.tensorflow)
        known("TensorFlow", minor, table)
        rows = [row for row in rows if row.tensorflow == minor]
    if options.python:
        known("Python", options.python, (row.python for row in rows))
        rows = [row for row in rows if row.python == options.python]
    if options.only:
        known("environment", options.only, (row.name for row in rows))
        rows = [row for row in rows if row.name == options.only]
    return rows


def nth(rows: Sequence[Environment], n: int, own: Environment) -> list[Environment]:
    """The one whose turn it is: each in turn but that of .venv, which all other tests run in, and other Pythons'."""
    turns = [row for row in rows if row != own and row.python == own.python]
    return [turns[n % len(turns)]] if turns else []


def own() -> Environment:
    """The environment .venv."""
    return Environment(".".join(installed_tensorflow().split(".")[:2]), minor_of(sys.executable))


def matrix(rows: Iterable[Row]) -> str:
    """The table for docs/versions.md."""
    order = {environment.name: place for place, environment in enumerate(environments())}
    rows = sorted((row for row in rows if row.name in order), key=lambda row: order[row.name])
    versions = list(dict.fromkeys(name for row in rows for name in row.cells))
    checks = list(dict.fromkeys(name for row in rows for name in row.outcomes))
    lines = [f"| {' | '.join(['environment', *versions, *checks])} |", "|---" * (1 + len(versions + checks)) + "|"]
    for row in rows:
        cells = [row.cells.get(name, "") for name in versions] + [row.outcomes.get(name, "") for name in checks]
        lines.append(f"| {' | '.join([row.name, *cells])} |")
    return "\n".join(lines) + "\n"


def rows_of(table: str) -> dict[str, Row]:
    """The rows of such a table."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.strip().splitlines()]
    header = lines[0] if lines else []
    rows = {}
    for name, *values in lines[2:]:
        said = {column: value for column, value in zip(header[1:], values) if value}
        outcomes = {column: value for column, value in said.items() if value.startswith(("yes", "no"))}
        rows[name] = Row(name, {column: value for column, value in said.items() if column not in outcomes}, outcomes)
    return rows


def write_page(rows: Iterable[Row], page: pathlib.Path = PAGE) -> None:
    """Puts the rows into the page's table, in the place of those of the same name."""
    before, mark, rest = page.read_text().partition("<!-- matrix -->\n")
    table, end, after = rest.partition("<!-- end -->")
    if not (mark and end):
        raise UnknownError(f"{page} has no place for the matrix, expected <!-- matrix --> and <!-- end -->")
    page.write_text(f"{before}{mark}{matrix((rows_of(table) | {row.name: row for row in rows}).values())}{end}{after}")


def test(options: argparse.Namespace) -> int:
    rows = chosen(options)
    available = {minor: python for minor, python in pythons().items() if wheel_for(minor)}
    plan = [row for row in rows if row.python in available]
    if options.nth is not None:
        plan = nth(plan, options.nth, own())
    if not plan:
        lacking = ", ".join(dict.fromkeys(row.python for row in rows if row.python not in available))
        why = f"dist/all has no wheel for Python {lacking}" if lacking else "none of these has a turn"
        print(f"versions: nothing to test: {why}. Fix: make wheel-all", file=sys.stderr)
        return 2
    seen = []
    for environment in plan:
        say(environment.name)
        row = examine(environment, available[environment.python], options.processes)
        seen.append(row)
        say(f"{row.name}: {row.cells} {row.outcomes}")
        if options.write and row.cells and not row.left_out:
            write_page([row])
    failed = [f"{row.name} ({', '.join(row.failed)})" for row in seen if row.failed]
    left_out = ", ".join(f"{row.left_out} checks of {row.name}" for row in seen if row.left_out)
    if left_out:
        say(f"{LEFT_OUT}: {left_out}")
        if "XPU_TESTS_LEFT_OUT" in os.environ:  # tools/run_tests.py repeats it
            pathlib.Path(os.environ["XPU_TESTS_LEFT_OUT"]).write_text(left_out)
    say(f"failed: {'; '.join(failed)}" if failed else f"{', '.join(row.name for row in seen)}: what ran passed")
    return 1 if failed else 0


def print_list(options: argparse.Namespace) -> int:
    there = pythons()
    for row in chosen(options):
        wheel = "a wheel" if wheel_for(row.python) else "no wheel" if row.python in there else "no such Python"
        print(f"{row.name:32} {row.distribution}=={tensorflows()[row.tensorflow]} {' '.join(row.beside)} ({wheel})")
    return 0


def natural(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no count, expected 0 or more")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch")
    wheel = commands.add_parser("wheel")
    wheel.add_argument("--own", action="store_true", help="for the Python of .venv only")
    for name in ("test", "list", "suite"):
        command = commands.add_parser(name)
        command.add_argument("--tensorflow", help="only this version, or this minor version")
        command.add_argument("--python", help="only this Python: 3.12")
        command.add_argument("--only", help="only the environment of this name")
    tests = commands.choices["test"]
    tests.add_argument("--nth", type=natural, help="only the one whose turn this is: any number, such as the day's")
    tests.add_argument("--processes", type=natural, default=2, help="how many the sweep runs in")
    tests.add_argument("--write", action="store_true", help="write what was seen into docs/versions.md")
    commands.choices["suite"].add_argument(
        "arguments", nargs="*", metavar="argument", help="for pytest, after --: -- -n 2 tests/runtime/test_eager.py"
    )
    options = parser.parse_args(arguments)
    try:
        if options.command == "suite":
            return suite(options)
        if options.command in ("test", "list"):
            return test(options) if options.command == "test" else print_list(options)
        if options.command == "fetch":
            fetch()
        else:
            build_wheels({minor_of(sys.executable): sys.executable} if options.own else pythons())
    except UnknownError as error:
        print(f"versions: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    use_own_python()
    sys.exit(main())
