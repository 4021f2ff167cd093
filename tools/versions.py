#!/usr/bin/env python3
"""One wheel for several versions of TensorFlow: `make wheel-all` and `make test-versions`.

`tools/versions.py fetch` puts the headers and libraries of each version in third_party/tensorflows.bzl into
build/versions, but for the one that .venv has. `tools/versions.py wheel` fetches them, too, and builds into dist/ a
wheel with a core for each of them, for every Python 3.10 to 3.13 of this machine, or for those that the variable
PYTHONS names ("python3.11 /opt/py/bin/python"). `tools/versions.py test` runs tests/versions/checks.py, and the sweep
with one kernel of each op, in fresh virtual environments: each TensorFlow with the Python of .venv, and the newest
release with every other Python that there is a wheel for; `--all` each with each, `--beside numpy==1.26.4` with what
is named in the place of what TensorFlow chooses. It writes what it saw into docs/versions.md and exits with 1 if
anything failed.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "versions"
DIST = ROOT / "dist"
RESULTS = BUILD / "results.json"
PAGE = ROOT / "docs" / "versions.md"
PYTHON_MINORS = (10, 11, 12, 13)
# What third_party/repositories.bzl takes of a TensorFlow.
NEEDED = re.compile(
    r"tensorflow/(include/.*|libtensorflow_(framework|cc)\.so\.2|python/lib_pywrap_tensorflow_common\.so)"
)
# TensorFlow and what the checks use beside it; pip chooses what TensorFlow itself asks for.
BESIDE = ("pytest==9.2.0", "pytest-xdist==3.8.0")


def say(text: str) -> None:
    print(f"versions: {text}", flush=True)


def tensorflows() -> dict[str, str]:
    """The table in third_party/tensorflows.bzl: minor version to release."""
    module = ast.parse((ROOT / "third_party" / "tensorflows.bzl").read_text())
    table: dict[str, str] = next(ast.literal_eval(node.value) for node in module.body if isinstance(node, ast.Assign))
    return table


def is_release(version: str) -> bool:
    return re.fullmatch(r"[\d.]+", version) is not None


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


def build_wheels() -> None:
    """Builds dist/, a wheel for each Python."""
    fetch()
    shutil.rmtree(DIST, ignore_errors=True)
    # The other Pythons need nothing installed: what builds a wheel is written in Python, and .venv has it.
    environment = {**os.environ, "XPU_ALL_VERSIONS": "1"}
    packages = output(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    for minor, python in pythons().items():
        say(f"building for Python {minor}")
        if python != sys.executable:
            environment["PYTHONPATH"] = packages
        command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
        subprocess.run([*command, "--no-deps", "-w", str(DIST), str(ROOT)], env=environment, check=True)
    for wheel in sorted(DIST.glob("*.whl")):
        say(f"{wheel.relative_to(ROOT)}, {wheel.stat().st_size / 1e6:.1f} MB")


@dataclasses.dataclass
class Row:
    """What was seen of one TensorFlow with one Python."""

    tensorflow: str
    python: str
    beside: dict[str, str] = dataclasses.field(default_factory=dict)  # numpy, keras
    outcomes: dict[str, str] = dataclasses.field(default_factory=dict)  # of a check: "yes", or what failed

    @property
    def ok(self) -> bool:
        return bool(self.outcomes) and all(outcome.startswith("yes") for outcome in self.outcomes.values())


def reports(path: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """The name of each test that pytest ran, and whether it passed."""
    if not path.exists():
        return
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        yield case.attrib["name"], not list(case.iter("failure")) and not list(case.iter("error"))


def examine(version: str, minor: str, python: str, beside: Sequence[str]) -> Row:
    """Makes the virtual environment and runs the checks in it."""
    row = Row(version, minor)
    venv = BUILD / "venvs" / f"tensorflow-{version}-python-{minor}"
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python, "-m", "venv", venv], check=True)
    program = str(venv / "bin" / "python")
    pip = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"tensorflow-cpu=={version}", *BESIDE, *beside], check=True)
    wheel = next(DIST.glob(f"*-cp{minor.replace('.', '')}-*.whl"))
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    listed = json.loads(output(program, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    installed = {package["name"].replace("_", "-"): package["version"] for package in listed}
    row.beside["numpy"] = installed["numpy"]
    row.beside["keras"] = installed.get("keras") or installed["keras-nightly"]  # a candidate asks for the latter
    xml_file = venv / "report.xml"
    pytest = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={xml_file}"]
    environment = {**os.environ, "XPU_SWEEP_KERNELS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    subprocess.run([*pytest, "tests/versions/checks.py"], cwd=ROOT, env=environment, check=False)
    for name, passed in reports(xml_file):
        row.outcomes[name.removeprefix("test_").replace("_", " ")] = "yes" if passed else "no"
    xml_file.unlink(missing_ok=True)
    sweep = [*pytest, "-n", "2", "tests/sweep/test_sweep.py", "-k", "test_op"]
    subprocess.run(sweep, cwd=ROOT, env=environment, check=False)
    seen = list(reports(xml_file))
    failed = [name for name, passed in seen if not passed]
    row.outcomes["ops"] = f"no: {len(failed)} of {len(seen)}" if failed or not seen else f"yes, {len(seen)}"
    if row.ok:
        shutil.rmtree(venv)
    return row


def chosen(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    """(TensorFlow, Python's version, Python) for each row."""
    table = tensorflows()
    available = {
        minor: python for minor, python in pythons().items() if list(DIST.glob(f"*-cp{minor.replace('.', '')}-*.whl"))
    }
    newest = [version for version in table.values() if is_release(version)][-1]
    own = minor_of(sys.executable)
    rows = []
    for version in table.values():
        for minor, python in available.items():
            named = arguments.python or arguments.all
            if arguments.tensorflow and version not in (arguments.tensorflow, table.get(arguments.tensorflow)):
                continue
            if arguments.python and minor != arguments.python:
                continue
            if (named or minor == own or version == newest) and has_wheel(version, minor):
                rows.append((version, minor, python))
    return rows


def has_wheel(version: str, minor: str) -> bool:
    """Whether there is a TensorFlow of this version for this Python."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--target", folder]
        command += ["--python-version", minor, "--only-binary=:all:", f"tensorflow-cpu=={version}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def matrix(rows: Iterable[Row]) -> str:
    """The table for docs/versions.md."""
    rows = sorted(rows, key=lambda row: ([int(n) for n in re.findall(r"\d+", row.tensorflow)], row.python))
    columns = list(dict.fromkeys(name for row in rows for name in row.outcomes))
    lines = [f"| TensorFlow | Python | NumPy | Keras | {' | '.join(columns)} |"]
    lines.append("|---|---|---|---|" + "---|" * len(columns))
    for row in rows:
        cells = [row.tensorflow, row.python, row.beside.get("numpy", ""), row.beside.get("keras", "")]
        cells += [row.outcomes.get(column, "") for column in columns]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_page(rows: Iterable[Row]) -> None:
    before, _, rest = PAGE.read_text().partition("<!-- matrix -->\n")
    after = rest.partition("<!-- end -->")[2]
    PAGE.write_text(f"{before}<!-- matrix -->\n{matrix(rows)}<!-- end -->{after}")


def test(arguments: argparse.Namespace) -> int:
    plan = chosen(arguments)
    if not plan:
        print("versions: nothing to test: dist/ has no wheel of `make wheel-all` for these", file=sys.stderr)
        return 2
    known: dict[str, Row] = {}
    if RESULTS.exists():
        known = {key: Row(**row) for key, row in json.loads(RESULTS.read_text()).items()}
    failed = []
    for version, minor, python in plan:
        say(f"TensorFlow {version} with Python {minor}")
        row = examine(version, minor, python, arguments.beside)
        known[f"{version} {minor} {' '.join(arguments.beside)}".strip()] = row
        RESULTS.write_text(json.dumps({key: dataclasses.asdict(value) for key, value in known.items()}, indent=1))
        say(f"TensorFlow {version} with Python {minor}: {row.outcomes}")
        failed += [] if row.ok else [f"{version} with Python {minor}"]
    write_page(known.values())
    say(f"failed: {', '.join(failed)}" if failed else f"{len(plan)} environments are as they should be")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch")
    commands.add_parser("wheel")
    tests = commands.add_parser("test")
    tests.add_argument("--tensorflow", help="only this version, or this minor version")
    tests.add_argument("--python", help="only this Python: 3.12")
    tests.add_argument("--all", action="store_true", help="each TensorFlow with each Python")
    tests.add_argument("--beside", nargs="+", default=[], help="other packages: numpy==1.26.4 keras==3.10.0")
    arguments = parser.parse_args()
    if arguments.command == "test":
        return test(arguments)
    fetch() if arguments.command == "fetch" else build_wheels()
    return 0


if __name__ == "__main__":
    sys.exit(main())
