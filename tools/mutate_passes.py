#!/usr/bin/env python3
"""Do the tests of commands notice broken passes? Breaks tensorflow_plugin/commands in one place at a time.

    tools/mutate_passes.py [--jobs N] [NAME ...]

A mutant is one source file of commands with one piece of its text replaced by another (tools/pass_mutants.py). Such are
an operand swapped, a buffer used again too early, an order dropped. It is compiled as Bazel compiles the file, and
linked in its place into the tests of commands, of which one has to fail. Exits with 1 if any mutant survives, with 2
for a wrong command line; the sources stay as they are. Takes ten minutes on two cores, once built.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from compile_commands import ROOT, actions, bazel
from pass_mutants import MUTANTS, Mutant

PACKAGE = "tensorflow_plugin/commands"
TESTS = f"//{PACKAGE}/tests/..."
SECONDS = 120  # of one test


def command_lines(mnemonic: str, target: str) -> list[list[str]]:
    """Those of Bazel's actions of a kind."""
    return [action["arguments"] for action in actions(f'mnemonic("{mnemonic}", {target})')]


class Builder:
    """How Bazel compiles the files of commands, and links the tests."""

    def __init__(self) -> None:
        bazel("build", TESTS)
        self.root = pathlib.Path(bazel("info", "execution_root").strip())
        compilations = command_lines("CppCompile", f"//{PACKAGE}:commands")
        self.compile = {pathlib.Path(line[line.index("-c") + 1]).name: line for line in compilations}
        # Without the files that say the same once more.
        links = [[a for a in line if not a.startswith("@")] for line in command_lines("CppLink", TESTS) if "-o" in line]
        self.links = [line for line in links if line[line.index("-o") + 1].endswith("_test")]

    def verdict(self, mutant: Mutant | None) -> str:
        """The result of the tests: "noticed", "survived", or why they could not be run."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            instead: dict[str, str] = {}  # of object files
            if mutant is not None:
                text = (ROOT / PACKAGE / mutant.file).read_text()
                if text.count(mutant.before) != 1:
                    return f"the text to replace is there {text.count(mutant.before)} times"
                source = folder / pathlib.Path(mutant.file).name
                source.write_text(text.replace(mutant.before, mutant.after))
                line, compiled = self._compilation(source, str(folder / "mutant.o"))
                instead[compiled] = str(folder / "mutant.o")
                if error := self._run(line):
                    return f"does not compile: {error}"
            for link in self.links:
                program = folder / pathlib.Path(link[link.index("-o") + 1]).name
                if not set(instead) <= set(link):
                    return "is not linked into the tests"
                linked = [instead.get(a, a) for a in link]
                linked[linked.index("-o") + 1] = str(program)
                if error := self._run(linked):
                    return f"does not link: {error}"
                try:
                    if self._run([str(program)], [a[2:] for a in link if a.startswith("-L")]) is not None:
                        return "noticed"
                except subprocess.TimeoutExpired:
                    return "noticed"
        return "survived"

    def _compilation(self, source: pathlib.Path, compiled: str) -> tuple[list[str], str]:
        """The command line that makes `compiled` of the source, and what Bazel has compiled it to."""
        line = [a for a in self.compile[source.name] if not a.endswith(".d") and a not in ("-MD", "-MF")]
        of_bazel = line[line.index("-o") + 1]
        line[line.index("-c") + 1], line[line.index("-o") + 1] = str(source), compiled
        return line, of_bazel

    def _run(self, line: list[str], libraries: Sequence[str] = ()) -> str | None:
        """The output of a command that fails; None for one that does not. With folders of shared libraries."""
        environment = os.environ | {"LD_LIBRARY_PATH": ":".join(str(self.root / folder) for folder in libraries)}
        ran = subprocess.run(
            line, cwd=self.root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return None if ran.returncode == 0 else ran.stderr[-500:] or "nothing"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants that are built at a time")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names, such as fused; all if none")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.names or m.name.startswith(tuple(arguments.names))]
    if not chosen:
        parser.error(f"no mutant's name begins with {' or '.join(arguments.names)}")
    builder = Builder()
    # Without a mutant all is right, or the rest says nothing.
    if (right := builder.verdict(None)) != "survived":
        print(f"the tests without a mutant: {right}")
        return 1
    unnoticed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for number, (mutant, verdict) in enumerate(zip(chosen, pool.map(builder.verdict, chosen), strict=True), 1):
            print(f"{number}/{len(chosen)} {mutant.file}, {mutant.name}: {verdict}", flush=True)
            unnoticed += verdict != "noticed"
    print(f"{len(chosen)} mutants: {unnoticed} that no test notices")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
