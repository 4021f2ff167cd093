"""docs/internals.md: its tables of hooks and of the private names that they need; and hooks/internals.py.

python -m tests.hooks.document        writes them
"""

import importlib
import pathlib

from tensorflow_xpu import _core, dlpack
from tensorflow_xpu.hooks import HOOKS
from tensorflow_xpu.hooks.features import FEATURES
from tensorflow_xpu.hooks.known import DIGESTS
from tensorflow_xpu.hooks.patch import SPEED, Need

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "internals.md"
NAMES = ROOT / "python" / "tensorflow_xpu" / "hooks" / "internals.py"
HEAD = '"""The hooks that the core has in C++. Generated: `python -m tests.hooks.document` writes it."""\n'


def hooks():
    lines = ["| hook | for | effect | without it |", "|---|---|---|---|"]
    lines += [
        f"| [`{hook.name}`](../python/tensorflow_xpu/hooks/{hook.name}.py) | {hook.kind} | {hook.purpose} "
        f"| {hook.without} |"
        for hook in HOOKS
    ]
    return "\n".join(lines)


def features():
    lines = ["| feature | effect | without it |", "|---|---|---|"]
    lines += [f"| {feature.name} | {feature.purpose} | {feature.without} |" for feature in FEATURES]
    return "\n".join(lines)


def guard(need, hook):
    """The checks before the name is used."""
    parts = ["is there"]
    if need.parameters:
        parts.append("parameters")
    elif need.kind:
        parts.append("kind")
    if need.kind == "added":
        parts = ["its class is there"]
    if getattr(hook, "kind", "") == SPEED and need.path in DIGESTS:
        count = len(DIGESTS[need.path])
        parts.append("source" if count == 1 else f"source, {count} known")
    return ", ".join(parts)


def names():
    """A section for each hook: its names, why, and the public interface that it would need instead."""
    sections = []
    for hook in (*HOOKS, dlpack.WITHOUT_COPY, dlpack.BY_COPY):
        lines = [f"### {hook.name}", "", f"In their place it would take {hook.public}.", ""]
        lines += ["| private name | use | guarded by |", "|---|---|---|"]
        uses = {}
        for variant in hook.variants():
            for text in variant.values():
                uses[Need.parse(text)] = "resolved when the hook is installed"
        for text in hook.relies:
            uses.setdefault(Need.parse(text), "its behaviour is relied on")
        lines += [f"| `{short(need.path)}` | {use} | {guard(need, hook)} |" for need, use in uses.items()]
        by = "the sources above" if hook.kind == SPEED else "whatever reading it raises takes the hook out"
        for owner, attributes in hook.attributes.items():
            which = ", ".join(f"`{name}`" for name in attributes)
            lines.append(f"| `{short(owner)}`: {which} | read from instances | {by} |")
        sections.append("\n".join(lines))
    for feature in FEATURES:
        lines = [f"### {feature.name}", "", f"In their place it would take {feature.public}.", ""]
        lines += ["| private name | use | guarded by |", "|---|---|---|"]
        lines += [
            f"| `{short(n.path)}` | resolved when first used | {guard(n, feature)} |" for n in feature.all_needs()
        ]
        for owner, attributes in feature.attributes.items():
            which = ", ".join(f"`{name}`" for name in attributes)
            lines.append(
                f"| `{short(owner)}`: {which} | read from instances | whatever reading it raises is an XPUError |"
            )
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def in_cpp():
    """The core's rows, by the core itself."""
    importlib.import_module("tensorflow")
    return _core.internals()


def cpp_hooks():
    lines = ["| hook | for | effect | without it |", "|---|---|---|---|"]
    lines += [
        f"| [`{row['name']}`](../tensorflow_plugin/tf_internals/{row['source']}) | {row['kind']} | {row['purpose']} "
        f"| {row['without']} |"
        for row in in_cpp()
    ]
    return "\n".join(lines)


def cpp_names():
    sections = []
    for row in in_cpp():
        lines = [f"### {row['name']}", "", f"In their place it would take {row['instead']}.", ""]
        lines += ["| private part | guarded by |", "|---|---|"]
        lines += [f"| {name} | {guarded} |" for name, guarded in row["parts"]]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def names_in_python():
    """The text of hooks/internals.py."""

    def listed(rows):
        return "".join(f'    "{row["name"]}",\n' for row in rows)

    required = [row for row in in_cpp() if row["kind"] == "required"]
    optional = [row for row in in_cpp() if row["kind"] != "required"]
    return (
        f"{HEAD}\n#: Those without which there is no XPU.\nREQUIRED = (\n{listed(required)})\n\n"
        f"#: All others.\nMAY_BE_LEFT_OUT = (\n{listed(optional)})\n"
    )


def short(path):
    return path.replace(":", ".")


def render(text):
    tables = {"hooks": hooks(), "features": features(), "names": names()}
    tables |= {"hooks in C++": cpp_hooks(), "parts": cpp_names()}
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    PATH.write_text(render(PATH.read_text()))
    NAMES.write_text(names_in_python())
