"""docs/internals.md: its tables of hooks and of the private names that they need.

python -m tests.hooks.document        writes them
"""

import pathlib

from tensorflow_xpu import dlpack
from tensorflow_xpu.hooks import HOOKS
from tensorflow_xpu.hooks.features import FEATURES
from tensorflow_xpu.hooks.known import DIGESTS
from tensorflow_xpu.hooks.patch import SPEED, Need

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs" / "internals.md"


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
    if need.signature:
        parts.append("signature")
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
    for hook in (*HOOKS, dlpack.NATIVE, dlpack.BY_COPY):
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


def short(path):
    return path.replace(":", ".")


def render(text):
    for name, table in (("hooks", hooks()), ("features", features()), ("names", names())):
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    PATH.write_text(render(PATH.read_text()))
