"""tools/reproducible.py: whether it sees what differs between two builds, and between two wheels."""

import zipfile

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run
from tests.tools.test_run_tests import load

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

reproducible = load("reproducible")


@pytest.fixture
def builds(tmp_path):
    """Two folders with the same compiled files, and with others that nobody compares."""
    for folder in ("first", "second"):
        for name, content in {
            "loader/process.o": "o",
            "loader/libloader.so": "so",
            "conformance/conformance": "program",
            "loader/loader.d": folder,
            "conformance/conformance.runfiles/process.o": folder,
        }.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    return tmp_path / "first", tmp_path / "second"


def test_the_same_builds(builds):
    assert reproducible.differences(*builds) == (3, [])


def test_builds_that_differ(builds):
    first, second = builds
    (second / "conformance" / "conformance").write_text("Program")
    (first / "loader" / "process.o").unlink()
    same, said = reproducible.differences(first, second)
    assert same == 1
    assert said == ["conformance/conformance differs", f"loader/process.o is missing in {first}"]


def wheel(path, date=(1980, 1, 1, 0, 0, 0), compression=zipfile.ZIP_DEFLATED, **files):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, date), content, compression)
    return path


@pytest.mark.parametrize(
    "other, said",
    [
        ({}, []),
        ({"core": "another"}, ["core differs"]),
        ({"date": (2026, 1, 1, 0, 0, 0)}, ["core has another date or mode", "loader has another date or mode"]),
        ({"more": "x"}, ["more is in one of them only"]),
        ({"compression": zipfile.ZIP_STORED}, ["their files are the same, but not the archives"]),
    ],
    ids=["same", "content", "date", "files", "compression"],
)
def test_wheels(other, said, tmp_path):
    files = {"loader": "l" * 100, "core": "c" * 100}
    first, second = wheel(tmp_path / "1.whl", **files), wheel(tmp_path / "2.whl", **{**files, **other})
    seen = reproducible.archive_differences(first, second)[1]
    assert len(seen) == len(said) and all(line.startswith(start) for line, start in zip(seen, said)), seen
    outcome = run(ROOT / "tools" / "reproducible.py", "--archive", first, second)
    assert outcome.returncode == bool(said), outcome
    assert outcome.stdout.endswith(f"are the same, {len(said)} are not\n"), outcome


def test_what_is_no_wheel(tmp_path):
    path = tmp_path / "x.whl"
    path.write_text("no archive")
    outcome = run(ROOT / "tools" / "reproducible.py", "--archive", path, path)
    assert outcome.returncode == 2 and f"{path} is no wheel, expected a zip archive" in outcome.stderr, outcome
