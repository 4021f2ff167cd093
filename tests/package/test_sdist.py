"""The source distribution: whether all that the build reads is in it, and what it says where something is missing."""

import re
import subprocess
import tarfile

import pytest
from packaging.requirements import Requirement

from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The unpacked distribution, made from a copy of what is in version control."""
    folder = tmp_path_factory.mktemp("sdist")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    copy = folder / "copy"
    for name in files:
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
            (copy / name).chmod((ROOT / name).stat().st_mode)
    outcome = run("setup.py", "-q", "sdist", "-d", folder, cwd=copy)
    assert outcome.returncode == 0, outcome
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("tensorflow_xpu-*/"))


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_the_build_reads_is_in_it(source):
    built_from = ("tensorflow_plugin/", "third_party/", "python/tensorflow_xpu/")
    here = {name for name in files_of(source.parent / "copy") if name.startswith(built_from)}
    single = {"BUILD", "WORKSPACE", ".bazelrc", ".bazelversion", "setup.py", "pyproject.toml", "NOTICE", "LICENSE"}
    assert len(here) > 600
    assert sorted((here | single | {"tools/abi.py", "tools/bazel.sh", "tools/bazel_build.py"}) - files_of(source)) == []
    assert (source / "tools" / "bazel.sh").stat().st_mode & 0o100
    # No more than that: what setuptools and pip write, and the pages about it.
    others = files_of(source) - here - single
    assert {name.split("/")[0] for name in others} <= {
        *["tools", "python", "PKG-INFO", "setup.cfg", "MANIFEST.in", "README.md", "CHANGELOG.md"],
    }


def test_the_version_is_the_packages(source):
    version = re.search(
        r'^__version__ = "(.*)"$', (ROOT / "python" / "tensorflow_xpu" / "_version.py").read_text(), re.M
    ).group(1)
    assert source.name == f"tensorflow_xpu-{version}"
    assert f"\nVersion: {version}\n" in (source / "PKG-INFO").read_text()


def test_one_line_says_what_is_missing(source, tmp_path):
    """A machine with git's, Python's and the shell's programs, and neither Bazel nor a compiler."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "bash", "dirname", "cat", "tail", "cut"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        (programs / name).symlink_to(found)
    outcome = run("setup.py", "-q", "bdist_wheel", cwd=source, environment={"PATH": str(programs), "BAZEL": ""})
    assert outcome.returncode == 1, outcome
    assert "Traceback" not in outcome.stderr
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("tensorflow_xpu: ")]
    assert "building it needs g++, strip and objdump, Bazel 4" in line, line
    assert "apt-get install g++ binutils bazel-bootstrap" in line, line
    outcome = run(
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--no-deps",
        "--target",
        tmp_path / "site",
        source,
        environment={"PATH": str(programs), "BAZEL": ""},
    )
    assert outcome.returncode == 1 and line in outcome.stderr + outcome.stdout, outcome


def test_the_build_environment_has_what_is_tested():
    """The packages for a build admit the versions of .venv; setuptools, which the wheel names, is pinned."""
    listed = (ROOT / "requirements-dev.txt").read_text()
    tested = dict(re.findall(r"^([\w-]+)==(\S+)", listed, re.M))
    text = (ROOT / "pyproject.toml").read_text()
    requires = [
        Requirement(line) for line in re.findall(r'"(.*)"', re.search(r"requires = \[(.*?)\n\]", text, re.S)[1])
    ]
    assert {one.name for one in requires} >= {"setuptools", "tensorflow-cpu", "pybind11", "onednn-cpu-gomp"}
    for one in requires:
        assert one.specifier.contains(tested[one.name]), f"{one}, but {tested[one.name]} is tested"
    assert [str(one.specifier) for one in requires if one.name == "setuptools"] == [f"=={tested['setuptools']}"]
