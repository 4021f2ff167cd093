#!/usr/bin/env python3
"""Builds once more, in another folder and without any cache, and compares what is compiled with what this checkout has.

Without arguments that is all that the wheel has, in half an hour and more; with names of Bazel's targets only those.
Prints how many files are the same, and each that differs or is missing; the exit status is 1 if there is one. The
option --archive compares two wheels instead, and names the files in them that differ.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILED = (".o", ".so", ".a", "")


def compiled(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files that compilers and linkers made, relative to the folder."""
    for path in sorted(folder.rglob("*")):
        # The files that a test runs with are linked into such a folder.
        if path.suffix in COMPILED and path.is_file() and not any(part.endswith(".runfiles") for part in path.parts):
            yield path.relative_to(folder)


def differences(first: pathlib.Path, second: pathlib.Path) -> tuple[int, list[str]]:
    """How many compiled files of `second` are in `first`, too, and the same; and what is to be said of the others."""
    same, said = 0, []
    for name in compiled(second):
        if not (first / name).exists():
            said.append(f"{name} is missing in {first}")
        elif (first / name).read_bytes() != (second / name).read_bytes():
            said.append(f"{name} differs")
        else:
            same += 1
    return same, said


def archive_differences(first: pathlib.Path, second: pathlib.Path) -> tuple[int, list[str]]:
    """The same of two wheels; dates and modes of what is in them count, too."""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        ones, others = ({i.filename: i for i in archive.infolist()} for archive in (one, other))
        said = [f"{name} is in one of them only" for name in sorted(ones.keys() ^ others.keys())]
        shared = sorted(ones.keys() & others.keys())
        for name in shared:
            if one.read(name) != other.read(name):
                said.append(f"{name} differs")
            elif (ones[name].date_time, ones[name].external_attr) != (
                others[name].date_time,
                others[name].external_attr,
            ):
                said.append(f"{name} has another date or mode")
    if not said and first.read_bytes() != second.read_bytes():
        said.append("their files are the same, but not the archives: compression, or the order")
    return len(shared) - sum(" only" not in line for line in said), said


def build(targets: Sequence[str], folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Builds the targets here and in the folder; where each has put its files."""
    places = []
    copy = folder / "another_folder"
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    python = f"--repo_env=PYTHON_BIN_PATH={ROOT / '.venv' / 'bin' / 'python'}"
    base = f"--output_base={folder / 'base'}"
    for where, startup, options in ((ROOT, [], []), (copy, [base, "--max_idle_secs=10"], ["--disk_cache="])):
        bazel = [str(where / "tools" / "bazel.sh"), *startup]
        subprocess.run([*bazel, "build", python, *options, "--", *targets], cwd=where, check=True)
        said = subprocess.run(
            [*bazel, "info", python, *options, "bazel-bin"], cwd=where, capture_output=True, text=True, check=True
        )
        places.append(pathlib.Path(said.stdout.strip()))
    return places[0], places[1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="Bazel's names; //:wheel_tree, all that is compiled, without any")
    parser.add_argument("--archive", nargs=2, type=pathlib.Path, metavar="WHEEL", help="compare these two")
    options = parser.parse_args(arguments)
    if options.archive:
        for path in options.archive:
            if not zipfile.is_zipfile(path):
                parser.error(f"{path} is no wheel, expected a zip archive")
        same, said = archive_differences(*options.archive)
    else:
        with tempfile.TemporaryDirectory() as folder:
            same, said = differences(*build(options.targets or ["//:wheel_tree"], pathlib.Path(folder)))
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)  # Bazel's files are read-only
    for line in said:
        print(f"reproducible: {line}")
    print(f"reproducible: {same} files are the same, {len(said)} are not")
    return 1 if said or not same else 0


if __name__ == "__main__":
    sys.exit(main())
