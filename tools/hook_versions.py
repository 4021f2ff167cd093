#!/usr/bin/env python3
"""The state of each hook with each TensorFlow and each Keras: the table in docs/internals.md.

`tools/hook_versions.py` reads the sources that tools/hook_digests.py reads, and those of Keras's newest nightly, and
writes the table. `--check` writes nothing and fails if the table is another one. A test runs one Keras a day
(tests/hooks/test_versions.py) and compares the hooks of that process with these.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
from collections.abc import Iterator

from hook_digests import FOLDER, ROOT, VERSIONS, Sources, definition

from tensorflow_xpu import hooks
from tensorflow_xpu.hooks.known import DIGESTS
from tensorflow_xpu.hooks.patch import SPEED, Need, Patch

PAGE = ROOT / "docs" / "internals.md"
BEGIN, END = "<!-- versions -->\n", "<!-- end -->"
NIGHTLY = "keras-nightly"


def found_in(sources: Sources, need: Need) -> ast.AST | None:
    """The definition of a name in a version; None for one that is gone, or comes from somewhere else."""
    node: ast.AST | None = sources.tree(need.module)
    for name in need.names:
        node = definition(node, name)
    return node


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function's parameters as needs write them."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = len(plain) - len(given.defaults)
    texts = [argument.arg + ("=" if i >= defaults else "") for i, argument in enumerate(plain)]
    if given.vararg or given.kwonlyargs:
        texts.append(f"*{given.vararg.arg}" if given.vararg else "*")
    texts += [a.arg + ("=" if d else "") for a, d in zip(given.kwonlyargs, given.kw_defaults)]
    texts += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return f"({', '.join(texts)})"


def trouble_with(need: Need, sources: Sources, hook: Patch) -> str:
    """Why a hook cannot be installed with a version, as far as one name shows; "?" where its self-check decides."""
    node = found_in(sources, need)
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    if node is None:
        return "off" if need.parameters and need.path in DIGESTS else ""
    if is_function and need.parameters and parameters_of(node) != need.parameters:  # type: ignore[arg-type]
        return "off"
    if hook.kind == SPEED and is_function and sources.digest(need) not in DIGESTS.get(need.path, {}):
        return "off" if hook.check is None else "?"
    return ""


def state_of(hook: Patch, sources: Sources) -> str:
    """The state of a hook with a version of the package that its names belong to: "", "?" or "off"."""
    states = []
    for variant in hook.variants():
        needs = [Need.parse(text) for text in variant.values()]
        troubles = {trouble_with(need, sources, hook) for need in needs if need.is_private_to == sources.package}
        relies = [need for need in map(Need.parse, hook.relies) if need.is_private_to == sources.package]
        unknown = any(sources.digest(need) not in DIGESTS.get(need.path, {}) for need in relies)
        if hook.kind == SPEED and unknown:
            troubles.add("off" if hook.check is None else "?")
        states.append("off" if "off" in troubles else "?" if "?" in troubles else "")
    return min(states, key=["", "?", "off"].index)


def exceptions(sources: Sources) -> dict[str, str]:
    """The hooks that are not simply on with a version."""
    states = {hook.name: state_of(hook, sources) for hook in hooks.HOOKS}
    return {name: state for name, state in states.items() if state}


def keras_versions() -> Iterator[Sources]:
    for version in VERSIONS["keras"]:
        yield Sources("keras", version)
    if list((FOLDER / NIGHTLY).glob("*.whl")):
        yield Sources("keras", "nightly", NIGHTLY)


def words(states: dict[str, str]) -> str:
    """A cell of the table."""
    texts = {"?": "after its self-check", "off": "off"}
    return "; ".join(f"`{name}` {texts[state]}" for name, state in states.items()) or "all on"


def table() -> str:
    tensorflows = [Sources("tensorflow", version) for version in VERSIONS["tensorflow"]]
    of_tensorflow = {sources.version: exceptions(sources) for sources in tensorflows}
    rows: list[tuple[list[str], list[str]]] = []
    for sources in keras_versions():
        of_keras = exceptions(sources)
        cells = [words({**of_tensorflow[version], **of_keras}) for version in of_tensorflow]
        if rows and rows[-1][1] == cells:
            rows[-1][0].append(sources.name)
        else:
            rows.append(([sources.name], cells))
    lines = [f"| Keras | {' | '.join(f'TensorFlow {version}' for version in of_tensorflow)} |"]
    lines.append("|---" * (len(of_tensorflow) + 1) + "|")
    for names, cells in rows:
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        lines.append(f"| {span} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the table is another one")
    options = parser.parse_args()
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    new = f"{before}{BEGIN}{table()}\n{END}{rest.partition(END)[2]}"
    if not options.check:
        PAGE.write_text(new)
    elif new != text:
        rows = [line for line in difflib.ndiff(text.splitlines(), new.splitlines()) if line[0] in "-+"]
        print("\n".join(rows))
        print(f"`tools/hook_versions.py` writes the lines with + into {PAGE.relative_to(ROOT)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
