"""docs/ops.md: the table of ops, generated from what is registered; and the families of `python -m tensorflow_xpu ops`.

python -m tests.sweep.document        writes docs/ops.md, and _families.py and _vocabulary.py in python/tensorflow_xpu
"""

from __future__ import annotations

import collections
import pathlib
import textwrap

from tensorflow_xpu import _core
from tests.sweep.absent import absent
from tests.sweep.adopted import OPS as ADOPTED
from tests.sweep.cases import FAMILIES
from tests.sweep.registrations import all_registrations

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "ops.md"
FAMILIES_PATH = ROOT / "python" / "tensorflow_xpu" / "_families.py"
VOCABULARY_PATH = ROOT / "python" / "tensorflow_xpu" / "_vocabulary.py"

HEADER = """# Ops

Every TensorFlow op with a kernel for XPU, generated from TensorFlow's kernel registry by
`python -m tests.sweep.document`. The sweep (`tests/sweep/`) runs each one with each type on `/xpu:0` and on
`/cpu:0`, eagerly and in a `tf.function`, twice, with soft placement off. It compares the results. How far they lie from
the exact ones is in [accuracy.md](accuracy.md).

Types in *italics* have all their arguments in host memory, as TensorFlow does for int32 on every accelerator.
TensorFlow itself provides other ops for every device (Const, Identity, Reshape, control flow, TensorList and others).
Those run on XPU, too. All remaining ops run on the CPU by soft placement.
"""


OF_TENSORFLOW = """These are TensorFlow's own kernels, which it has for GPUs and the plugin registers for XPU: they move
elements about and never look into them. `tests/training/test_datasets.py` runs each on both devices. Strings stay in
host memory.
"""

ABSENT = """Ops that are not here, but that TensorFlow has for GPUs, beyond those for every device. Also ops of another
accelerator's plugin (Intel's extension, DirectML's, Metal's). Those for which TensorFlow has a kernel for the CPU run
there by soft placement.
"""


def render() -> str:
    """The page's text, from the registrations of this process."""
    by_op = collections.defaultdict(list)
    for r in all_registrations():
        by_op[r.op].append(r)
    lines = [HEADER, f"{len(by_op)} ops, {sum(map(len, by_op.values()))} kernels.", ""]
    for family, cases in {**FAMILIES, "datasets_iterators": ADOPTED}.items():
        ops = sorted(op for op in by_op if op in cases)
        lines += [f"## {family.replace('_', ' and ')}", ""]
        if cases is ADOPTED:
            lines += [OF_TENSORFLOW]
        lines += ["| op | types | host memory |", "|---|---|---|"]
        for op in ops:
            common = set.intersection(*(set(r.host_args) for r in by_op[op]))
            attrs = collections.defaultdict(dict)
            for r in by_op[op]:
                for attr, dtype in r.types:
                    on_host = len(r.host_args) > len(common)
                    attrs[attr].setdefault(f"*{dtype.name}*" if on_host and len(r.types) == 1 else dtype.name, None)
            types = "; ".join(f"{a}: {', '.join(sorted(names))}" for a, names in attrs.items()) or "-"
            lines.append(f"| {op} | {types} | {', '.join(sorted(common)) or '-'} |")
        lines.append("")
    return "\n".join([*lines, *render_absent()])


def render_absent() -> list[str]:
    """The lines of the last section."""
    lines = ["## not there", "", ABSENT, "| ops | why |", "|---|---|"]
    return lines + [f"| {', '.join(ops)} | {why} |" for why, ops in absent().items()] + [""]


def families() -> dict[str, list[str]]:
    """The ops of each section of the page."""
    there = sorted({r.op for r in all_registrations()})
    return {
        family.replace("_", " and "): [op for op in there if op in cases]
        for family, cases in {**FAMILIES, "datasets_iterators": ADOPTED}.items()
    }


def render_families() -> str:
    """The module's text."""
    lines = ['"""The families of ops, as docs/ops.md has them: written by `python -m tests.sweep.document`."""', ""]
    lines += ["FAMILIES = {"]
    for family, ops in families().items():
        if ops:
            words = textwrap.wrap(" ".join(ops), 112, break_long_words=False)
            lines += [f'    "{family}": """', *(f"        {line}" for line in words), '    """,']
    return "\n".join([*lines, "}"]) + "\n"


def render_vocabulary() -> str:
    """The names that the core has, for code that runs before TensorFlow is imported."""
    lists = _core.ask_core("XpuCore_DescribeVocabulary")
    meanings = {
        "subdevice_types": "The backends in the wheel, the default first.",
        "primitives": "The primitives, which TF_XPU_FAULT may name.",
        "passes": "The passes over lists of commands, which TF_XPU_FUSION_WITHOUT may name.",
    }
    lines = ['"""The names that the core has: written by `python -m tests.sweep.document`."""']
    for name, meaning in meanings.items():
        lines += ["", f"#: {meaning}", f"{name.upper()} = (", *(f'    "{word}",' for word in lists[name]), ")"]
    return "\n".join(lines) + "\n"


def pages() -> dict[pathlib.Path, str]:
    """The generated texts, by their place."""
    return {PATH: render(), FAMILIES_PATH: render_families(), VOCABULARY_PATH: render_vocabulary()}


def check() -> None:
    """Raises AssertionError if a file on disk is not what is generated."""
    for path, text in pages().items():
        assert path.exists() and path.read_text() == text, f"{path} is stale: run python -m tests.sweep.document"


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
        print(f"wrote {path}")
