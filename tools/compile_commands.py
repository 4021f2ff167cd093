#!/usr/bin/env python3
"""Writes compile_commands.json, from which editors (clangd and others) know how each C++ file is compiled.

`make compile-commands` runs it after a build, since headers that Bazel makes or links to must be there.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Compilations, with those of the tests.
QUERY = 'mnemonic("CppCompile", deps(//tensorflow_plugin/... + //python/...))'
# Bazel's options that are for gcc alone.
GCC_ONLY = {"-fno-canonical-system-headers", "-Wunused-but-set-parameter", "-Wno-free-nonheap-object"}


def bazel(*arguments: str) -> str:
    """The output of Bazel."""
    command = [str(ROOT / "tools" / "bazel.sh"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def actions(query: str) -> list[dict[str, Any]]:
    """The actions of Bazel, as its action graph describes them."""
    return json.loads(bazel("aquery", "--output=jsonproto", query)).get("actions", [])


def entry(arguments: list[str], external: str) -> dict[str, Any]:
    """An entry for one compiler call: run from the workspace, so that headers are found where they are edited."""
    line = [re.sub(r"^(-[IL])?external/", rf"\g<1>{external}/", a) for a in arguments if a not in GCC_ONLY]
    return {"directory": str(ROOT), "file": line[line.index("-c") + 1], "arguments": line}


def main() -> int:
    """Writes the file into the root of the repository, with one entry for each source."""
    external = bazel("info", "output_base").strip() + "/external"
    entries = {e["file"]: e for e in (entry(action["arguments"], external) for action in reversed(actions(QUERY)))}
    path = ROOT / "compile_commands.json"
    path.write_text(json.dumps(sorted(entries.values(), key=lambda e: e["file"]), indent=1))
    print(f"{path.name}: {len(entries)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
