#!/usr/bin/env python3
"""Finds out which sources of TensorFlow and Keras the speed hooks rely on, and what becomes of each hook with them.

`tools/hook_digests.py` reads the sources of each version in VERSIONS, from the package index by way of build/hooks.
It writes their digests into python/tensorflow_xpu/hooks/known.py: run the tests of hooks with a version before a digest
of it is in there (docs/internals.md). The hooks are those of the installed package, so run `make install` before.
`--check` writes nothing. It prints a line for each name whose sources are not those of the table, with what to do; the
exit status is then 1.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))  # at the end: tests that import this file are to see the installed package
from tensorflow_xpu import hooks  # noqa: E402
from tensorflow_xpu.hooks.patch import SPEED, Need, block, digest_of  # noqa: E402

FOLDER = ROOT / "build" / "hooks"
KNOWN = ROOT / "python" / "tensorflow_xpu" / "hooks" / "known.py"
HEAD = '"""The sources that the speed hooks were tested with. Generated: `tools/hook_digests.py` writes it."""\n'
VERSIONS = {
    "tensorflow": ("2.19.1", "2.20.0", "2.21.0", "2.22.0rc0"),
    "keras": (
        "3.8.0", "3.9.0", "3.9.1", "3.9.2", "3.10.0", "3.11.0", "3.11.1", "3.11.2", "3.11.3", "3.12.0", "3.12.1",
        "3.12.2", "3.12.3", "3.12.4", "3.13.0", "3.13.1", "3.13.2", "3.14.0", "3.14.1", "3.15.0", "3.15.1",
    ),
}  # fmt: skip
DISTRIBUTIONS = {"tensorflow": "tensorflow-cpu", "keras": "keras"}


def wheel(requirement: str) -> pathlib.Path:
    """The wheel of such a distribution, which pip brings if it is not there."""
    folder = FOLDER / requirement
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    return next(folder.glob("*.whl"))


class Sources:
    """The Python files of a version."""

    def __init__(self, package: str, version: str, requirement: str = "") -> None:
        self.package, self.version = package, version
        path = wheel(requirement or f"{DISTRIBUTIONS[package]}=={version}")
        self.name = path.name.split("-")[1] if requirement else version
        self._archive = zipfile.ZipFile(path)
        self._files = set(self._archive.namelist())
        self._trees: dict[str, ast.Module | None] = {}

    def text(self, module: str) -> str:
        """A module's source; empty if there is none."""
        file = module.replace(".", "/") + ".py"
        return self._archive.read(file).decode() if file in self._files else ""

    def tree(self, module: str) -> ast.Module | None:
        """A module's syntax tree; None if there is no such module."""
        if module not in self._trees:
            text = self.text(module)
            self._trees[module] = ast.parse(text) if text else None
        return self._trees[module]

    def digest(self, need: Need) -> str | None:
        """The digest of the function of that name; None if there is none."""
        text = self.text(need.module)
        node: ast.AST | None = self.tree(need.module)
        for name in need.names:
            node = definition(node, name)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        first = min(n.lineno for n in (node, *node.decorator_list)) - 1
        return digest_of(block(text.splitlines(), first))


def definition(node: ast.AST | None, name: str) -> ast.AST | None:
    """The definition of that name in a module or class; for a property, the function that reads it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [n for n in getattr(node, "body", ()) if isinstance(n, kinds) and n.name == name]
    return found[0] if found else None


def needs() -> list[Need]:
    """The names whose sources are of interest, each once."""
    paths = {need.path: need for hook in hooks.HOOKS if hook.kind == SPEED for need in hook.all_needs()}
    return [paths[path] for path in sorted(paths)]


def digests() -> dict[str, dict[str, str]]:
    """By path and digest: the versions that have such a source."""
    found: dict[str, dict[str, list[str]]] = {}
    for package, versions in VERSIONS.items():
        for version in versions:
            sources = Sources(package, version)
            for need in needs():
                digest = sources.digest(need) if need.is_private_to == package else None
                if digest is not None:
                    found.setdefault(need.path, {}).setdefault(digest, []).append(version)
    return {path: {digest: span(of) for digest, of in found[path].items()} for path in sorted(found)}


def span(versions: list[str]) -> str:
    """Those in a row, in short."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def text_of(found: dict[str, dict[str, str]]) -> str:
    """The module with the table."""
    lines = [HEAD, "# ruff: noqa: E501", "DIGESTS: dict[str, dict[str, str]] = {"]
    for path, known in found.items():
        lines.append(f'    "{path}": {{')
        lines += [f'        "{digest}": "{versions}",' for digest, versions in known.items()]
        lines.append("    },")
    return "\n".join([*lines, "}\n"])


def table_in(text: str) -> dict[str, dict[str, str]]:
    """The table of such a module, which is not imported: the installed one may be another."""
    (table,) = [node.value for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)]
    return dict(ast.literal_eval(table)) if table is not None else {}


def relying_on(path: str) -> str:
    """The names of the hooks for speed that need a function."""
    names = [hook.name for hook in hooks.HOOKS if hook.kind == SPEED and path in {n.path for n in hook.all_needs()}]
    return " and ".join(names)


def differences(known: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> list[str]:
    """A line for each thing in which the table in the file is not as the sources are, and what to do."""
    lines: list[str] = []
    for path in sorted({*known, *found}):
        old, new = known.get(path, {}), found.get(path, {})
        for digest in new.keys() - old.keys():
            todo = f"read what changed, and change the hook {relying_on(path)} if it has to"
            lines.append(f"{path}: {new[digest]} has a source that is not in the table ({digest}): {todo}")
        for digest in old.keys() - new.keys():
            why = "no version in VERSIONS has it" if relying_on(path) else "no hook needs it"
            lines.append(f"{path}: the table has a source of {old[digest]} ({digest}), but {why}: it can go")
        for digest in old.keys() & new.keys():
            if old[digest] != new[digest]:
                lines.append(f"{path}: {new[digest]} has the source {digest}, not {old[digest]}: no hook changes")
    return sorted(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say what would change")
    options = parser.parse_args()
    found = digests()
    if not options.check:
        KNOWN.write_text(text_of(found))
        return 0
    before = KNOWN.read_text()
    if before == text_of(found):
        print("the table is as the sources are")
        return 0
    print("\n".join(differences(table_in(before), found)) or "the table has the right digests in another form")
    print(f"`tools/hook_digests.py` writes {KNOWN.relative_to(ROOT)}; docs/internals.md says which tests to run")
    return 1


if __name__ == "__main__":
    sys.exit(main())
